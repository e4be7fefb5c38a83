//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

// Queues. There are two kinds, of the same nodes and steps: the queue of a lock,
// whose head alone competes for the word, and in mode HQ the queue of each
// cohort, whose head, the leader, sees to it that a node stands in the lock's
// queue for the cohort. What goes from head to head is a baton: the place in the
// lock's queue, and what the detector has seen.
//
// # Node states
//
//	N1  free -> waiting       store  owner, pinned to the node's P
//	N2  waiting -> head       CAS    promoter; or store: its holder found no predecessor, or one that left
//	N3  waiting -> abandoned  CAS    holder, budget spent
//	N4  head -> free          store  the promoter, when nothing leads to the node any more
//	N5  abandoned -> free     store  the promoter that unlinked it
//	N6  head, abandoned, skipped: next 0 -> left    CAS    promoter: whoever links itself here is the head at once
//	N7  N4, N5 or N9 by the successor that found left in next
//	N8  waiting -> skipped    CAS    promoter: the holder seems to be off its CPU
//	N9  skipped -> out        CAS    the promoter that unlinked it
//	N10 skipped -> abandoned  CAS    holder: N5 will follow
//	N11 out -> free           store  holder
//	N12 waiting -> free       store  owner that found mode CLOSING: the node never was in a queue
//
// A node's holder is its owner, who claimed it, except that the node which
// stands for a cohort has the leader for its holder, whoever that is.

package hq

const (
	maxPs    = 1024 // a P beyond it waits without a node
	maxSkips = 4    // of waiters in a row; the next is made head though it seems to be off its CPU

	left = ^uint32(0) // value of next: the node's holder has gone, its successor is the head
)

const (
	free = iota
	waiting
	head
	abandoned
	skipped
	out
)

// A qnode takes two cache lines, which amd64 fetches as a pair.
type qnode struct {
	next  atomicUint32 // reference of the successor; 0 = none yet. Written by the successor, or left (N6)
	state atomicUint32
	beat  atomicUint32 // when the holder last looked at the clock: see beatOf
	baton baton        // written by the promoter before N2 or N6, from then on the holder's
	_     [96]byte
}

// A baton goes from head to head of one queue.
type baton struct {
	up       uint32 // in a cohort: the node that stands for it in the lock's queue, 0 = none
	sighting        // in the lock's queue
}

// nodes is untouched, hence not resident, but for those of Ps that have queued.
var nodes [maxPs * nodesPerP]qnode

// node returns the node with reference ref, which is not 0.
//
//go:norace
func node(ref uint32) *qnode { return &nodes[ref-1] }

// claim takes a free node of the calling P (N1) and returns its reference, or 0.
//
//go:norace
func claim(now int64) uint32 {
	p := uint32(pin()) // the caller is pinned already: this only tells the number
	unpin()
	if p >= maxPs {
		return 0
	}
	for ref := p*nodesPerP + 1; ref <= p*nodesPerP+nodeLimit(); ref++ {
		if n := node(ref); n.state.Load() == free {
			n.next.Store(0)
			n.beat.Store(beatOf(now))
			n.baton = baton{}
			n.state.Store(waiting)
			return ref
		}
	}
	return 0
}

// beatOf is a time in units of about a microsecond.
func beatOf(now int64) uint32 { return uint32(now >> 10) }

// stale reports whether the holder has not looked at the clock for so long, as
// seen at now, that it can not be running: it would have left.
//
//go:norace
func (n *qnode) stale(now, budget int64) bool {
	return int32(beatOf(now)-n.beat.Load()) > int32(beatOf(budget+staleAfter))
}

// follow links the node me behind prev, whose place as the tail it has taken. It
// is the head at once if there is no predecessor, or one that left.
//
//go:norace
func follow(prev, me uint32) {
	n := node(me)
	if prev != 0 {
		p := node(prev)
		if p.next.Swap(me) != left || mutant("hq: successor of one that left waits") {
			return
		}
		if !mutant("hq: no baton from a predecessor that left") {
			n.baton = p.baton
		}
		unlinked(prev) // N7
	}
	n.state.Store(head) // N2
}

// unlinked gives back a node that nothing leads to any more.
//
//go:norace
func unlinked(ref uint32) {
	n := node(ref)
	if n.state.Load() == skipped && !mutant("hq: skipped node free at once") && n.state.CompareAndSwap(skipped, out) { // N9
		return
	}
	n.state.Store(free) // N4, N5
}

// drop is what the holder of a skipped node does with it.
//
//go:norace
func drop(ref uint32) {
	n := node(ref)
	if mutant("hq: skipped node dropped at once") || !n.state.CompareAndSwap(skipped, abandoned) { // N10
		n.state.Store(free) // N11
	}
}

// pass makes the next waiter behind ref the head of the queue of c, or of l if c
// is nil, and gives it the baton. ref, whose state is head, is unlinked, and so
// are waiters on the way that have abandoned their nodes or are skipped. It
// reports false if that emptied the queue.
//
//go:norace
func (w *wait) pass(c *cohort, ref uint32, b baton) bool {
	for skips := 0; ; {
		if w.empty(c, ref) {
			unlinked(ref)
			return false
		}
		n := node(ref)
		n.baton = b
		if n.next.Load() == 0 && n.next.CompareAndSwap(0, left) { // N6
			return true // the successor, which has not linked itself yet, will see it and unlink ref
		}
		next := n.next.Load()
		unlinked(ref)
		s := node(next)
		s.baton = b
		switch {
		case skips < maxSkips && s.stale(w.now, w.tuned.budget) && s.state.CompareAndSwap(waiting, skipped): // N8
			skips++
			w.tally.skips++
		case s.state.CompareAndSwap(waiting, head) && !mutant("hq: promotes two"): // N2
			return true
		}
		ref = next
	}
}

// empty empties the queue of c, or of the lock, if ref is its tail.
//
//go:norace
func (w *wait) empty(c *cohort, ref uint32) bool {
	if c != nil {
		return c.empty(ref)
	}
	for {
		s := w.lock.word.Load()
		if s&modeMask != modeQ && !mutant("hq: tail sought in the word") {
			return rosterOf(s).tail.CompareAndSwap(ref, 0)
		}
		if s>>refShift != ref {
			return false
		}
		if w.lock.word.CompareAndSwap(s, s&^refMask) { // T9
			return true
		}
	}
}
