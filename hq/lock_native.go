//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

// Lock: a 4-byte spin lock for pinned sections.
//
// # State word
//
//	bits   name     set by             cleared by            may be stale?
//	0      locked   whoever takes it   UnlockPinned          no
//	1      pending  the lone spinner   the same, always      no; at most one holder of the bit
//	2      nosteal  the queue's head   the head; impatient   may be set while the head's thread is off its CPU:
//	                                                         whoever has waited out a budget ignores it
//	3      parked   a sleeper          unlockSlow            may be set with nobody asleep; must not be clear
//	                                                         while a sleeper of this lock has not been told to wake
//	4-7    -        reserved for mode and generation of the hierarchical form; always 0 here
//	8-31   tail     the last waiter    the head              no; 0 = no queue
//
// # Transitions (the other bits stay as they are)
//
//	T1   locked 0 -> 1                      CAS   fast path, barge
//	T2   locked 1 -> 0                      add   UnlockPinned
//	T3   pending 0 -> 1                     CAS   lone waiter: nobody queued
//	T4   (pending, locked) 10 -> 01         CAS   lone waiter takes the word
//	T5   pending 1 -> 0                     and   lone waiter's budget is spent
//	T6   tail t -> me                       CAS   enqueue
//	T7   (tail, locked) (me, 0) -> (0, 1)   CAS   head takes the word, nobody behind it
//	T8   (tail, locked) (t, 0) -> (t, 1)    CAS   head takes the word, then promotes its successor
//	T9   tail me -> 0                       CAS   head leaves, nobody behind it
//	T10  nosteal 0 -> 1                     or    head starves
//	T11  nosteal 1 -> 0                     CAS   with T7, T8; and: head leaves
//	T12  parked 0 -> 1                      CAS   sleeper, only while locked
//	T13  parked 1 -> 0                      and   unlocker, before it tells the sleepers
//
// # Node states
//
//	N1  free -> waiting       store  owner, pinned to the node's P
//	N2  waiting -> head       CAS    promoter; or store: owner found no predecessor, or a predecessor that left
//	N3  waiting -> abandoned  CAS    owner, budget spent
//	N4  head -> free          store  the owner, when nothing leads to the node any more
//	N5  abandoned -> free     store  the promoter that unlinked it
//	N6  head, abandoned: next 0 -> left    CAS    promoter: whoever links itself here is the head at once
//	N7  head -> free          store  by the successor that found left in next
//
// # Invariants
//
//	I1  at most one goroutine has set locked and not yet cleared it.
//	I2  at most one node of a lock is head, or one promotion is under way
//	    (between T7, T8 or T9 and N2 or N6).
//	I3  a node is free only if no word and no next leads to it.
//	I4  tail != 0 implies that some node is head, a promotion is under way, or
//	    next of some node is left and its successor is about to link itself.
//	I5  a sleeper that has not been told to wake implies locked and parked, or
//	    an unlocker between T2 and the end of unlockSlow, or the sleeper has not
//	    looked at the word yet.
//	I6  a pinned wait ends after spinBudget. Nothing waits for another thread to
//	    finish a step: N6 lets the slower of promoter and successor do the rest.
//
// # Ordering
//
// T1, T4, T7, T8 acquire, T2 releases. N2 and the link (swap of next) are
// release and acquire. All of it is sync/atomic, hence stronger than needed.
//
// # Lock order and context
//
// A goroutine that holds a Lock may take another only by TryLockPinned: a wait
// may have to unpin, and that would let go of the first section's protection.
//
// # Not guaranteed
//
// FIFO order; progress of a waiter within a bound if the machine's threads are
// not scheduled.

package hq

import (
	"unsafe"

	"github.com/hqsync/hqsync/internal/race"
)

const (
	locked  = 1 << 0
	pending = 1 << 1
	nosteal = 1 << 2
	parked  = 1 << 3

	tailShift = 8
	tailMask  = 0xffffff << tailShift
)

const (
	spinBudget   = 30_000    // ns: longest pinned wait, since a stop-the-world waits for it
	headPatience = 20_000    // ns: a head that waited this long sets nosteal
	maxLosses    = 16        // as headPatience, in races lost to barging
	starving     = 1_000_000 // ns: total wait after which a head sets nosteal at once, as long as sync.Mutex waits
	clockEvery   = 32        // pauses between two looks at the clock, about 1 us
)

// A Lock is a spin lock for pinned sections. The zero value is unlocked. It
// must not be copied after first use.
//
// In the terminology of the Go memory model, the n'th call of an Unlock method
// synchronizes before the m'th call of a Lock method returns, for n < m.
// No method allocates unless it has to sleep.
type Lock struct {
	word atomicUint32
}

// Lock pins the calling goroutine and locks l.
//
//go:norace
func (l *Lock) Lock() {
	pin()
	l.LockPinned()
}

// Unlock unlocks l and unpins the calling goroutine.
//
//go:norace
func (l *Lock) Unlock() {
	l.UnlockPinned()
	unpin()
}

// TryLock pins the calling goroutine and locks l, or does neither if l is not
// free.
//
//go:norace
func (l *Lock) TryLock() bool {
	pin()
	if l.TryLockPinned() {
		return true
	}
	unpin()
	return false
}

// LockPinned locks l for a caller that has pinned itself exactly once and holds
// no other Lock. While it waits it may unpin and pin the caller again, so a P
// number must not be carried across it.
//
//go:norace
func (l *Lock) LockPinned() {
	if !l.word.CompareAndSwap(0, locked) { // T1
		l.lockSlow()
	}
	race.Acquire(unsafe.Pointer(l))
}

// TryLockPinned locks l if it is free, for a caller that has pinned itself. It
// never waits, so the caller may hold other Locks.
//
//go:norace
func (l *Lock) TryLockPinned() bool {
	for w := l.word.Load(); w&locked == 0; w = l.word.Load() {
		if l.word.CompareAndSwap(w, w|locked) { // T1
			race.Acquire(unsafe.Pointer(l))
			return true
		}
	}
	return false
}

// UnlockPinned unlocks l and leaves the caller pinned.
//
//go:norace
func (l *Lock) UnlockPinned() {
	race.Release(unsafe.Pointer(l))
	if w := l.word.Add(^uint32(0)); w&(locked|parked) != 0 { // T2
		l.unlockSlow(w)
	}
}

// lockSlow takes l however long it takes: spin pinned for a bounded time, sleep
// unpinned, again.
//
//go:noinline
//go:norace
func (l *Lock) lockSlow() {
	race.Disable() // queue nodes and sleepers are shared by unrelated locks
	begin := nanotime()
	for patient := true; !l.spin(begin, patient); patient = false {
		unpin()
		l.sleep()
		pin()
	}
	race.Enable()
}

// spin tries to take l within spinBudget. A caller that has slept already is no
// longer patient: it takes a free word even if a head asked for it.
//
//go:norace
func (l *Lock) spin(begin int64, patient bool) bool {
	barred := uint32(locked | nosteal)
	if !patient {
		barred = locked
	}
	for {
		w := l.word.Load()
		switch {
		case w&barred == 0:
			if l.word.CompareAndSwap(w, w|locked) { // T1
				return true
			}
		case w&(tailMask|pending|nosteal) == 0:
			if l.word.CompareAndSwap(w, w|pending) { // T3
				return l.spinPending()
			}
		default:
			return l.spinQueued(begin)
		}
	}
}

// spinPending waits as the lone waiter.
//
//go:norace
func (l *Lock) spinPending() bool {
	deadline := nanotime() + spinBudget
	for i := 1; ; i++ {
		w := l.word.Load()
		if w&locked == 0 {
			if l.word.CompareAndSwap(w, w&^pending|locked) { // T4
				return true
			}
			continue
		}
		pause(1)
		if i%clockEvery == 0 && nanotime() > deadline {
			l.word.And(^uint32(pending)) // T5
			return false
		}
	}
}

// spinQueued waits in the queue, then as its head.
//
//go:norace
func (l *Lock) spinQueued(begin int64) bool {
	now := nanotime()
	deadline := now + spinBudget
	me := claim()
	if me == 0 {
		return l.spinUnqueued(deadline)
	}
	n := node(me)
	if !l.enqueue(me, n) {
		for i := 1; n.state.Load() != head; i++ {
			pause(1)
			if i%clockEvery == 0 && nanotime() > deadline &&
				n.state.CompareAndSwap(waiting, abandoned) { // N3
				return false
			}
		}
	}
	return l.spinHead(me, n, deadline, now-begin > starving)
}

// enqueue appends the caller's node and reports whether that made it the head.
//
//go:norace
func (l *Lock) enqueue(me uint32, n *qnode) (isHead bool) {
	w := l.word.Load()
	for !l.word.CompareAndSwap(w, w&^tailMask|me<<tailShift) { // T6
		w = l.word.Load()
	}
	prev := w >> tailShift
	if prev != 0 {
		p := node(prev)
		if p.next.Swap(me) != left {
			return false
		}
		p.state.Store(free) // N7
	}
	n.state.Store(head) // N2
	return true
}

// spinHead competes for the word as the head of the queue.
//
//go:norace
func (l *Lock) spinHead(me uint32, n *qnode, deadline int64, starved bool) bool {
	if starved {
		l.word.Or(nosteal) // T10
	}
	impatientAt := deadline - spinBudget + headPatience
	for i, losses := 1, 0; ; i++ {
		w := l.word.Load()
		if w&locked == 0 {
			if w>>tailShift == me {
				if l.word.CompareAndSwap(w, w&^(tailMask|nosteal)|locked) { // T7, T11
					n.state.Store(free) // N4
					return true
				}
			} else if l.word.CompareAndSwap(w, w&^nosteal|locked) { // T8, T11
				l.promote(n)
				return true
			}
			losses++
			continue
		}
		pause(1)
		if i%clockEvery != 0 && losses < maxLosses {
			continue
		}
		now := nanotime()
		if now > deadline {
			l.leaveHead(me, n)
			return false
		}
		if !starved && (now > impatientAt || losses >= maxLosses) {
			starved = true
			l.word.Or(nosteal) // T10
		}
		losses = 0
	}
}

// leaveHead gives up the head's role: it goes to the successor.
//
//go:norace
func (l *Lock) leaveHead(me uint32, n *qnode) {
	l.word.And(^uint32(nosteal)) // T11
	if l.clearTail(me) {
		n.state.Store(free) // N4
		return
	}
	l.promote(n)
}

// promote makes the next waiter behind n the head and unlinks n, which is the
// caller's own node and not the tail. Abandoned nodes on the way are unlinked.
//
//go:norace
func (l *Lock) promote(n *qnode) {
	for {
		if n.next.Load() == 0 && n.next.CompareAndSwap(0, left) { // N6
			return // the successor, which has not linked itself yet, will see it and free n
		}
		next := n.next.Load()
		n.state.Store(free) // N4, N5
		n = node(next)
		if n.state.CompareAndSwap(waiting, head) { // N2
			return
		}
		if l.clearTail(next) { // abandoned, and nobody behind it
			n.state.Store(free) // N5
			return
		}
	}
}

// clearTail empties the queue if ref is its tail (T9).
//
//go:norace
func (l *Lock) clearTail(ref uint32) bool {
	for {
		w := l.word.Load()
		if w>>tailShift != ref {
			return false
		}
		if l.word.CompareAndSwap(w, w&^tailMask) {
			return true
		}
	}
}

// spinUnqueued waits without a node: all nodes of this P are still linked
// somewhere, or its number is beyond the nodes there are.
//
//go:norace
func (l *Lock) spinUnqueued(deadline int64) bool {
	for backoff := uint32(1); ; {
		if w := l.word.Load(); w&(locked|nosteal) == 0 && l.word.CompareAndSwap(w, w|locked) { // T1
			return true
		}
		pause(backoff)
		if backoff < clockEvery {
			backoff *= 2
		}
		if nanotime() > deadline {
			return false
		}
	}
}
