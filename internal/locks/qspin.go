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

// Qspin has the shape of Linux's qspinlock: a word that is taken by one
// instruction if it is free, one waiter that spins on it, then a queue of which
// the head spins on it. A new owner promotes the next head before it returns, so
// unlocking is one store.
type Qspin struct {
	word  atomicUint32
	_     [line - 4]byte
	nodes []node
}

// NewQspin returns an unlocked Qspin.
func NewQspin(threads int) *Qspin { return &Qspin{nodes: make([]node, threads)} }

// Lock locks l.
func (l *Qspin) Lock(thread int) {
	if !l.word.CompareAndSwap(0, locked) && !lockPending(&l.word, l.word.Load(), 0) {
		l.lockQueued(thread)
	}
}

func (l *Qspin) lockQueued(thread int) {
	n, me := &l.nodes[thread], refOf(thread)
	n.reset()
	if tryLock(&l.word, 0) {
		return
	}
	if prev := swapBits(&l.word, tailMask, me<<tailShift) >> tailShift; prev != 0 {
		storeRelease(&l.nodes[prev-1].next, me)
		await(&n.granted)
	}
	if w := awaitFree(&l.word); w == me<<tailShift && l.word.CompareAndSwap(w, locked) {
		return
	}
	setBits(&l.word, locked, locked)
	storeRelease(&l.nodes[await(&n.next)-1].granted, 1)
}

// Unlock unlocks l.
func (l *Qspin) Unlock(int) { setBits(&l.word, locked, 0) }
