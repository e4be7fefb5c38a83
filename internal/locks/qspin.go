package locks

// The word of Qspin and CNA. hqkernel.go has one with more fields.
const (
	locked  = 1 << 0
	pending = 1 << 8 // the one waiter that does without the queue
	held    = locked | pending

	tailShift = 16
	tailMask  = 0xffff << tailShift
)

// pendingLoops bounds the wait for a hand-over from pending to locked.
const pendingLoops = 512

// lockPending takes the lock as its only waiter, w being the word just read.
// Bits in idle say nothing about contention.
func lockPending(word *atomicUint32, w, idle uint32) bool {
	for i := 0; w&^idle == pending && i < pendingLoops; i++ {
		pause()
		w = word.Load()
	}
	if w&^(locked|idle) != 0 {
		return false
	}
	w = word.Or(pending)
	if w&^(locked|idle) != 0 {
		if w&pending == 0 {
			setBits(word, pending, 0)
		}
		return false
	}
	for w&locked != 0 {
		if w = word.Load(); w&locked != 0 {
			pause()
		}
	}
	setBits(word, held, locked)
	return true
}

// awaitFree waits, as the head of the queue, until nobody has the word.
func awaitFree(word *atomicUint32) uint32 {
	for {
		w := word.Load()
		if w&held == 0 {
			return w
		}
		pause()
	}
}

// tryLock takes a word that is idle apart from the bits in idle.
func tryLock(word *atomicUint32, idle uint32) bool {
	w := word.Load()
	return w&^idle == 0 && word.CompareAndSwap(w, w|locked)
}

// QspinWord has the shape of Linux's qspinlock: a word that is taken by one
// instruction if it is free, one waiter that spins on it, then a queue of which
// the head spins on it. A new owner promotes the next head before it returns, so
// unlocking is one store. A thread waits for one word at a time, so all words
// can share the nodes.
type QspinWord struct{ word atomicUint32 }

// Nodes are the queue nodes of threads.
type Nodes []node

// Lock locks l.
func (l *QspinWord) Lock(nodes Nodes, thread int) {
	if !l.word.CompareAndSwap(0, locked) && !lockPending(&l.word, l.word.Load(), 0) {
		l.lockQueued(nodes, thread)
	}
}

func (l *QspinWord) lockQueued(nodes Nodes, thread int) {
	n, me := &nodes[thread], refOf(thread)
	n.reset()
	if tryLock(&l.word, 0) {
		return
	}
	if prev := swapBits(&l.word, tailMask, me<<tailShift) >> tailShift; prev != 0 {
		storeRelease(&nodes[prev-1].next, me)
		await(&n.granted)
	}
	next := n.next.Load() // while there is time: whoever linked itself already
	if w := awaitFree(&l.word); w == me<<tailShift && l.word.CompareAndSwap(w, locked) {
		return
	}
	setBits(&l.word, locked, locked)
	if next == 0 {
		next = await(&n.next)
	}
	storeRelease(&nodes[next-1].granted, 1)
}

// Unlock unlocks l.
func (l *QspinWord) Unlock() { setBits(&l.word, locked, 0) }

// Qspin is a QspinWord with its own nodes.
type Qspin struct {
	l     QspinWord
	_     [line - 4]byte
	nodes Nodes
}

// NewQspin returns an unlocked Qspin.
func NewQspin(threads int) *Qspin { return &Qspin{nodes: make(Nodes, threads)} }

// Lock locks l.
func (l *Qspin) Lock(thread int) { l.l.Lock(l.nodes, thread) }

// Unlock unlocks l.
func (l *Qspin) Unlock(int) { l.l.Unlock() }
