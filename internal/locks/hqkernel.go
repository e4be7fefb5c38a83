package locks

// HQKernel follows the idea of the hierarchical queued spin lock that was
// proposed for Linux (Fedorov and Stepanov, RFC v3, 2026): a qspinlock whose
// waiters, once hand-overs are seen to cross domains, queue by domain, with a
// list of the domains that have waiters. Budgets and thresholds are the
// proposal's. What it does not have is the pool of metadata that locks share by
// a hash of their address: each lock has its own, and no conflicts.
//
// # Word
//
//	bits    name
//	0       locked
//	8       pending   only while the mode is not hierarchical
//	10-11   mode      none, flat, hierarchical
//	16-30   tail      last waiter of the flat queue
//	31      closed    instead of a tail: the flat queue is not in use
//
// The mode changes flat -> none by the last waiter of the flat queue, which also
// closes it; none -> hierarchical by the next contender; hierarchical -> flat or
// none by an owner that finds all queues empty. A contender that swaps itself in
// for closed has come to a closed queue: it closes it again and takes whoever
// linked up behind it along to the other kind of queue.
type HQKernel struct {
	word atomicUint32
	_    [line - 4]byte

	// The metadata.
	bound    atomicUint32 // 1: somebody has bound it, or is about to
	sequence atomicUint32 // of bindings; a domain's queue belongs to the present one if it has the same
	list     atomicUint32 // of domains with waiters: first (low half) and last (high half), numbers from 1
	_        [line - 12]byte

	domains []hqDomain // by number; domains[0] is unused
	nodes   []hqNode

	// Thresholds, in hand-overs.
	budget  uint32 // of a domain, until another has its turn
	general uint32 // of a flat queue's run that make it hierarchical, with
	remote  uint32 // so many from one domain to another
	keep    uint32 // remote ones in a run that keep it hierarchical
	streak  uint32 // local ones before a remote one counts
}

// hqDomain is the queue of a domain.
type hqDomain struct {
	tail     atomicUint64 // sequence (high half), reference of the last waiter (low half)
	head     atomicUint32 // reference of the first waiter
	next     atomicUint32 // numbers of the neighbours in the list of domains
	prev     atomicUint32
	passedBy atomicUint32 // hand-overs between domains since the first of the list had its turn
	_        [line - 24]byte
}

type hqNode struct {
	next    atomicUint32
	granted atomicUint32 // 1: head of the flat queue; else 1 + number of the domain in whose queue it is head
	// Counters of the run, written by the giver.
	generals atomicUint32 // hand-overs within the flat queue, or of this turn of the domain
	remotes  atomicUint32 // hand-overs between domains
	before   atomicUint32 // domain of the giver
	giver    atomicUint32 // reference of the giver
	recent   atomicUint32 // hand-overs since the domain changed last
	domain   uint32       // constant
	// Private to the owner, while it is in lockSlow.
	last uint32 // reference: end of the chain that it takes from queue to queue
	_    [line - 36]byte
}

func (n *hqNode) reset() {
	storeRelease(&n.next, 0)
	storeRelease(&n.granted, 0)
	storeRelease(&n.generals, 0)
	storeRelease(&n.remotes, 0)
	storeRelease(&n.before, 0)
	storeRelease(&n.giver, 0)
	storeRelease(&n.recent, 0)
}

const (
	hqModeNone = 0
	hqModeFlat = 1 << 10
	hqModeTree = 2 << 10
	hqModeMask = 3 << 10

	hqClosed = 1 << 31
	hqIdle   = hqModeFlat | hqClosed // bits that do not mean busy
)

// NewHQKernel returns an unlocked HQKernel.
func NewHQKernel(threads []Place) *HQKernel {
	l := &HQKernel{
		domains: make([]hqDomain, domains(threads)+1),
		nodes:   make([]hqNode, len(threads)),
		budget:  1000, general: 50, remote: 2, keep: 1, streak: 2,
	}
	l.word.Store(hqModeFlat)
	for i, p := range threads {
		l.nodes[i].domain = uint32(p.Domain) + 1
	}
	return l
}

func (l *HQKernel) node(ref uint32) *hqNode { return &l.nodes[ref-1] }

// Unlock unlocks l.
func (l *HQKernel) Unlock(int) { setBits(&l.word, locked, 0) }

// Lock locks l.
func (l *HQKernel) Lock(thread int) {
	w := l.word.Load()
	if w&^hqIdle == 0 && l.word.CompareAndSwap(w, w|locked) {
		return
	}
	if w&hqModeMask == hqModeFlat && lockPending(&l.word, w, hqIdle) {
		return
	}
	n := &l.nodes[thread]
	n.reset()
	n.last = refOf(thread)
	if tryLock(&l.word, hqIdle) {
		return
	}
	if domain := l.enqueue(n, refOf(thread)); domain == 0 {
		l.lockFlat(n, refOf(thread))
	} else {
		l.lockTree(n, refOf(thread), domain)
	}
}

// enqueue waits to be the head of the flat queue, returning 0, or of the list of
// domains, returning the number of the domain in whose queue it is.
func (l *HQKernel) enqueue(n *hqNode, me uint32) (domain uint32) {
	for flat := l.word.Load()&hqModeMask == hqModeFlat; ; {
		if flat {
			if head, domain := l.enqueueFlat(n, me); head {
				return domain
			}
		}
		sequence := uint32(0)
		if sequence, flat = l.bind(); flat {
			continue
		}
		if domain, ok := l.enqueueTree(n, me, sequence); ok {
			return domain
		}
		flat = false
	}
}

// enqueueFlat appends the chain from n to n.last to the flat queue and waits. It
// fails if that is closed.
func (l *HQKernel) enqueueFlat(n *hqNode, me uint32) (head bool, domain uint32) {
	switch prev := swapBits(&l.word, tailMask, n.last<<tailShift) & tailMask; prev {
	case 0:
		return true, 0
	case hqClosed:
		return l.reclose(n), 0
	default:
		storeRelease(&l.node(prev>>tailShift).next, me)
		return true, await(&n.granted) - 1
	}
}

// reclose closes the queue again and keeps whoever has queued behind n meanwhile, or
// finds that the queue is open: then n is its head.
func (l *HQKernel) reclose(n *hqNode) (open bool) {
	for {
		w := l.word.Load()
		if w&hqModeMask == hqModeFlat {
			return true
		}
		if l.word.CompareAndSwap(w, w&^tailMask|hqClosed) {
			n.last = w >> tailShift
			return false
		}
	}
}

// bind sees to it that the lock is hierarchical, and returns the sequence number
// of its metadata; or it finds it flat.
func (l *HQKernel) bind() (sequence uint32, flat bool) {
	for {
		switch l.word.Load() & hqModeMask {
		case hqModeFlat:
			return 0, true
		case hqModeTree:
			// Read between two looks at the mode: it is this binding's.
			if s := l.sequence.Load(); l.word.Load()&hqModeMask == hqModeTree {
				return s, false
			}
			continue
		}
		if l.bound.Load() != 0 {
			pause() // somebody is about to publish
			continue
		}
		if !l.bound.CompareAndSwap(0, 1) {
			continue
		}
		s := l.sequence.Load() + 1
		l.sequence.Store(s)
		for i := range l.domains[1:] {
			l.domains[i+1].tail.Store(uint64(s) << 32)
		}
		if l.publish() {
			return s, false
		}
		storeRelease(&l.bound, 0)
	}
}

// publish makes the mode hierarchical unless somebody else has decided on it.
func (l *HQKernel) publish() bool {
	for {
		w := l.word.Load()
		if w&hqModeMask != hqModeNone {
			return false
		}
		if w&pending != 0 {
			pause()
			continue
		}
		if l.word.CompareAndSwap(w, w|hqModeTree) {
			return true
		}
	}
}

// enqueueTree appends the chain from n to n.last to the queue of n's domain and
// waits. It fails if the metadata is bound anew or not at all.
func (l *HQKernel) enqueueTree(n *hqNode, me, sequence uint32) (domain uint32, ok bool) {
	q := &l.domains[n.domain]
	old := q.tail.Load()
	for !q.tail.CompareAndSwap(uint64(sequence)<<32|uint64(uint32(old)), uint64(sequence)<<32|uint64(n.last)) {
		if old = q.tail.Load(); uint32(old>>32) != sequence {
			return 0, false
		}
	}
	if prev := uint32(old); prev != 0 {
		storeRelease(&l.node(prev).next, me)
		return await(&n.granted) - 1, true
	}
	storeRelease(&q.head, me)
	storeRelease(&q.passedBy, 0)
	if l.listDomain(n.domain) {
		return n.domain, true
	}
	return await(&n.granted) - 1, true
}

// listDomain appends a domain to the list and reports whether it is the only
// one.
func (l *HQKernel) listDomain(d uint32) (alone bool) {
	q := &l.domains[d]
	storeRelease(&q.next, 0)
	storeRelease(&q.prev, 0)
	last := swapBits(&l.list, 0xffff<<16, d<<16) >> 16
	if last == 0 {
		setBits(&l.list, 0xffff, d)
		return true
	}
	storeRelease(&q.prev, last) // before next: who sees next may have to overwrite prev
	storeRelease(&l.domains[last].next, d)
	return false
}

// lockFlat takes the word as the head of the flat queue.
func (l *HQKernel) lockFlat(n *hqNode, me uint32) {
	l.countFlat(n)
	n.next.Load() // while there is time: brings the line if somebody has linked itself already
	for {
		w := awaitFree(&l.word)
		if w>>tailShift != me {
			break
		}
		after := uint32(hqModeFlat)
		if n.generals.Load() > l.general && n.remotes.Load() > l.remote {
			after = hqModeNone | hqClosed
		}
		if l.word.CompareAndSwap(w, after|locked) {
			return
		}
	}
	setBits(&l.word, locked, locked)
	next := l.node(await(&n.next))
	// A waiter that was before me already makes this a ping-pong of two, which says nothing.
	if n.next.Load() != n.giver.Load() {
		storeRelease(&next.generals, n.generals.Load()+1)
	} else {
		storeRelease(&next.generals, n.generals.Load())
	}
	storeRelease(&next.remotes, n.remotes.Load())
	storeRelease(&next.recent, n.recent.Load()+1)
	storeRelease(&next.before, n.domain)
	storeRelease(&next.giver, me)
	storeRelease(&next.granted, 1)
}

// countFlat counts, on the receiver's side, a hand-over from another domain.
func (l *HQKernel) countFlat(n *hqNode) {
	if before := n.before.Load(); before == 0 || before == n.domain {
		return
	}
	if n.recent.Load() > l.streak {
		storeRelease(&n.remotes, n.remotes.Load()+1)
	}
	storeRelease(&n.recent, 0)
}

// lockTree takes the word as the head of the list of domains, in the queue of
// domain d, and hands that role over.
func (l *HQKernel) lockTree(n *hqNode, me, d uint32) {
	n.next.Load() // while there is time: brings the line if somebody has linked itself already
	awaitFree(&l.word)
	setBits(&l.word, locked, locked) // first: once the queue is left, others may be heads
	switch to := l.leave(n, me, d); to {
	case hqNobody:
	case hqLocal:
		l.handLocal(n, d)
	default:
		l.handRemote(n, d, to)
	}
}

// Where to hand the role of the head; else the number of a domain.
const (
	hqLocal  = ^uint32(0)
	hqFirst  = hqLocal - 1 // the first of the list
	hqNobody = hqLocal - 2
)

// leave takes the domain out of the list if n is its last waiter. The caller owns
// the lock, so nobody else takes anything out of the list; others append.
func (l *HQKernel) leave(n *hqNode, me, d uint32) (to uint32) {
	q := &l.domains[d]
	if uint32(q.tail.Load()) != me {
		return hqLocal
	}
	shortened, emptied := l.unlinkLast(d)
	if !shortened && !emptied {
		await(&q.next)
	}
	tail := q.tail.Load()
	if uint32(tail) == me && q.tail.CompareAndSwap(tail, tail&^0xffffffff) {
		switch {
		case emptied:
			l.retire(n)
			return hqNobody
		case shortened:
			return hqFirst
		}
		return l.unlink(d)
	}
	// A waiter of this domain has slipped in.
	if emptied {
		next := await(&n.next)
		storeRelease(&q.head, next)
		if !l.listDomain(d) {
			return hqNobody // others have come and one of them is the head
		}
	} else if shortened {
		l.listDomain(d)
	}
	return hqLocal
}

// unlinkLast takes d off the end of the list if it is there.
func (l *HQKernel) unlinkLast(d uint32) (shortened, emptied bool) {
	q := &l.domains[d]
	w := l.list.Load()
	if w>>16 != d {
		return false, false
	}
	prev := q.prev.Load()
	if w&0xffff == d {
		return false, l.list.CompareAndSwap(w, 0)
	}
	storeRelease(&l.domains[prev].next, 0)
	for ; w>>16 == d; w = l.list.Load() {
		if l.list.CompareAndSwap(w, w&0xffff|prev<<16) {
			storeRelease(&q.prev, 0)
			return true, false
		}
	}
	storeRelease(&l.domains[prev].next, d) // somebody has linked up behind d
	return false, false
}

// unlink takes d, which is not the last, out of the list and returns the domain
// behind it.
func (l *HQKernel) unlink(d uint32) (next uint32) {
	q := &l.domains[d]
	next = q.next.Load()
	if prev := q.prev.Load(); prev != 0 {
		storeRelease(&l.domains[prev].next, next)
		storeRelease(&l.domains[next].prev, prev)
		return next
	}
	storeRelease(&l.domains[next].prev, 0)
	setBits(&l.list, 0xffff, next)
	return next
}

// handLocal promotes the next waiter of the domain, or, if the domain's turn is
// over, that of another one.
func (l *HQKernel) handLocal(n *hqNode, d uint32) {
	q := &l.domains[d]
	next := await(&n.next)
	storeRelease(&q.head, next)
	generals := n.generals.Load()
	if generals >= l.budget {
		if to := q.next.Load(); to != 0 {
			l.handRemote(n, d, to)
			return
		}
		if w := l.list.Load(); w>>16 == d && w&0xffff != d {
			l.handRemote(n, d, hqFirst)
			return
		} else if w>>16 == d { // no other domain waits
			generals = 0
		}
	}
	l.grant(next, d, generals+1, n.remotes.Load())
}

// handRemote promotes the first waiter of another domain.
func (l *HQKernel) handRemote(n *hqNode, d, to uint32) {
	passedBy := uint32(0)
	if to != hqFirst && l.domains[d].passedBy.Load() < uint32(len(l.domains)-1) {
		if passedBy = l.domains[d].passedBy.Load(); l.list.Load()&0xffff != d {
			passedBy++
		}
	} else {
		for to = l.list.Load() & 0xffff; to == 0; to = l.list.Load() & 0xffff {
			pause()
		}
	}
	storeRelease(&l.domains[to].passedBy, passedBy)
	remotes := n.remotes.Load()
	if n.generals.Load() > l.streak {
		remotes++
	}
	l.grant(l.domains[to].head.Load(), to, 0, remotes)
}

func (l *HQKernel) grant(ref, domain, generals, remotes uint32) {
	next := l.node(ref)
	storeRelease(&next.generals, generals)
	storeRelease(&next.remotes, remotes)
	storeRelease(&next.granted, 1+domain)
}

// retire gives the metadata back when no domain has waiters. The caller owns the
// lock.
func (l *HQKernel) retire(n *hqNode) {
	if l.list.Load() != 0 {
		return
	}
	s := uint64(l.sequence.Load()) << 32
	for i := range l.domains[1:] {
		if l.domains[i+1].tail.Load() != s {
			return
		}
	}
	for i := range l.domains[1:] {
		if !l.domains[i+1].tail.CompareAndSwap(s, 0) {
			for j := range l.domains[1 : i+1] {
				l.domains[j+1].tail.Store(s)
			}
			return
		}
	}
	mode := uint32(hqModeNone)
	if n.remotes.Load() < l.keep {
		mode = hqModeFlat
	}
	for {
		w := l.word.Load()
		if w&pending != 0 {
			pause()
			continue
		}
		if l.word.CompareAndSwap(w, w&^hqModeMask|mode) {
			break
		}
	}
	storeRelease(&l.bound, 0)
}
