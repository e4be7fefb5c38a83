package locks

const (
	cnaFlushOdds   = 1800 // once in so many hand-overs the foreign waiters get their turn: some 400 us
	cnaShuffleOdds = 128  // once in so many hand-overs a queue without foreign waiters set aside is looked through
)

// CNA is the compact NUMA-aware lock of Dice and Kogan (EuroSys 2019), here in
// the place of the queue of Qspin. Waiters of other domains than the head's are
// moved to a secondary queue, which travels with the head's role until no waiter
// of the domain is left or its time has come.
type CNA struct {
	word   atomicUint32
	_      [line - 4]byte
	nodes  []cnaNode
	domain []int // of each thread, for an owner that has no time to read it from a waiter's node
}

type cnaNode struct {
	next    atomicUint32
	granted atomicUint32 // bit 0: head; above: reference of the head of the secondary queue, 0 = empty
	tail    atomicUint32 // reference of the last in the secondary queue that this node heads
	domain  atomicUint32 // constant
	random  random
	_       [line - 20]byte
}

// NewCNA returns an unlocked CNA.
func NewCNA(threads []Place) *CNA {
	l := &CNA{nodes: make([]cnaNode, len(threads)), domain: make([]int, len(threads))}
	for i, p := range threads {
		l.domain[i] = p.Domain
		l.nodes[i].domain.Store(uint32(p.Domain))
	}
	return l
}

func (l *CNA) node(ref uint32) *cnaNode { return &l.nodes[ref-1] }

// Lock locks l.
func (l *CNA) Lock(thread int) {
	if !l.word.CompareAndSwap(0, locked) && !lockPending(&l.word, l.word.Load(), 0) {
		l.lockQueued(thread)
	}
}

func (l *CNA) lockQueued(thread int) {
	n, me := &l.nodes[thread], refOf(thread)
	storeRelease(&n.next, 0)
	storeRelease(&n.granted, 0)
	if tryLock(&l.word, 0) {
		return
	}
	aside := uint32(0) // head of the secondary queue
	if prev := swapBits(&l.word, tailMask, me<<tailShift) >> tailShift; prev != 0 {
		storeRelease(&l.node(prev).next, me)
		aside = await(&n.granted) >> 1
	}
	aside = l.arrange(n, thread, aside)
	if w := awaitFree(&l.word); w == me<<tailShift && l.leave(w, aside) {
		return
	}
	setBits(&l.word, locked, locked)
	next := await(&n.next)
	if aside != 0 && l.domain[next-1] != l.domain[thread] {
		next, aside = l.splice(aside, next), 0
	}
	l.grant(next, aside)
}

// Unlock unlocks l.
func (l *CNA) Unlock(int) { setBits(&l.word, locked, 0) }

func (l *CNA) grant(ref, aside uint32) { storeRelease(&l.node(ref).granted, aside<<1|1) }

// leave takes the word as the last waiter of the main queue; the secondary queue
// becomes the main one.
func (l *CNA) leave(w, aside uint32) bool {
	last := uint32(0)
	if aside != 0 {
		last = l.node(aside).tail.Load()
	}
	if !l.word.CompareAndSwap(w, last<<tailShift|locked) {
		return false
	}
	if aside != 0 {
		l.grant(aside, 0)
	}
	return true
}

// arrange puts a waiter of the head's domain behind it, if there is one and it
// is not the turn of the others. It returns the secondary queue.
func (l *CNA) arrange(n *cnaNode, thread int, aside uint32) uint32 {
	next := n.next.Load()
	if next == 0 || aside == 0 && n.random.next(thread)%cnaShuffleOdds != 0 {
		return aside
	}
	if aside != 0 && n.random.next(thread)%cnaFlushOdds == 0 {
		storeRelease(&n.next, l.splice(aside, next))
		return 0
	}
	last := uint32(0) // of the foreign waiters passed over
	for at := next; at != 0; last, at = at, l.node(at).next.Load() {
		if l.node(at).domain.Load() != n.domain.Load() {
			continue
		}
		if last != 0 {
			aside = l.append(aside, next, last)
			storeRelease(&n.next, at)
		}
		break
	}
	return aside
}

// append moves the waiters from first to last to the end of the secondary queue.
func (l *CNA) append(aside, first, last uint32) uint32 {
	storeRelease(&l.node(last).next, 0)
	if aside == 0 {
		aside = first
	} else {
		storeRelease(&l.node(l.node(aside).tail.Load()).next, first)
	}
	storeRelease(&l.node(aside).tail, last)
	return aside
}

// splice puts the secondary queue in front of next.
func (l *CNA) splice(aside, next uint32) (first uint32) {
	storeRelease(&l.node(l.node(aside).tail.Load()).next, next)
	return aside
}
