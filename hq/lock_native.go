//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

// Lock: a 4-byte spin lock for pinned sections.
//
// # State word
//
//	bits   name     set by             cleared by            may be stale?
//	0      locked   whoever takes it   UnlockPinned          no
//	1      pending  the lone spinner   the same, always      no; at most one holder of the bit; only in mode Q
//	2      nosteal  the queue's head,  the same, for each    may be set while the thread that asked is off its CPU:
//	                lone spinner,      other as well         whoever has waited out a budget ignores it. May be
//	                called sleeper                           clear while one asks: it looks, and sets it again
//	3      parked   a sleeper          unlockSlow            may be set with nobody asleep; see I5
//	4-5    mode     inflate, deflate   deflate               no; 0 = Q, 1 = HQ, 2 = CLOSING
//	6      q only   SetHQ              SetHQ                 no
//	7      waking   unlockSlow         the sleeper that it    no; never together with parked
//	                                   has called, or itself
//	8-31   ref      mode Q: the last waiter, 0 = no queue. HQ, CLOSING: the roster
//
// # Transitions (the other bits stay as they are)
//
//	T1   locked 0 -> 1                      CAS   fast path, barge
//	T2   locked 1 -> 0                      add   UnlockPinned
//	T3   pending 0 -> 1                     CAS   lone waiter: mode Q and nobody queued
//	T4   (pending, locked) 10 -> 01         CAS   lone waiter takes the word, nosteal -> 0
//	T5   pending 1 -> 0                     and   lone waiter's budget is spent, nosteal -> 0
//	T6   Q: ref t -> me                     CAS   enqueue
//	T7   Q: (ref, locked) (me, 0) -> (0, 1) CAS   head takes the word, nobody behind it
//	T8   locked 0 -> 1                      CAS   head takes the word, then makes its successor head
//	T9   Q: ref me -> 0                     CAS   head leaves, nobody behind it
//	T10  nosteal 0 -> 1                     or    head, lone waiter or called sleeper has lost its patience
//	T11  nosteal 1 -> 0                     CAS   with T7, T8, and T1 of a called sleeper; and: it, or the head, leaves
//	T12  parked 0 -> 1                      CAS   sleeper, only while locked; or owner that was one. Not while waking
//	T13  (parked, waking) 10 -> 01          CAS   unlocker, before it takes the stack of sleepers
//	T14  (mode, ref) (Q, t) -> (HQ, r)      CAS   head inflates: the queue goes on in roster r, t its tail
//	T15  mode HQ -> CLOSING                 CAS   deflate: nobody enqueues any more
//	T16  (mode, ref) (CLOSING, r) -> (Q, 0) CAS   nobody was queued
//	T17  mode CLOSING -> HQ                 CAS   somebody was
//	T18  q only 0 <-> 1                     or, and
//	T19  waking 1 -> 0                      and   called sleeper that has the lock or sleeps again; unlocker that found nobody
//
// Queues, cohorts and rosters have theirs in queue_native.go and
// roster_native.go.
//
// # Invariants
//
//	I1  at most one goroutine has set locked and not yet cleared it.
//	I2  at most one node of a lock's queue is head, or one promotion is under
//	    way (between T7, T8 or T9 and N2 or N6). The same holds for the queue of
//	    each cohort.
//	I3  a node is free only if no tail, no next and no baton leads to it.
//	I4  a queue that is not empty has a head, a promotion is under way, or next
//	    of some node is left and its successor is about to link itself.
//	I5  a sleeper that has not been told to wake implies locked and parked, or
//	    waking, or an unlocker between T2 and the end of unlockSlow, or the sleeper
//	    has not looked at the word yet, or it is in the row of one that has been
//	    told to and has not tried for a budget since. So whoever clears parked (T13)
//	    or waking (T19) looks at the stack after that: those who relied on the bit
//	    are there, unless somebody else has taken them off it.
//	I6  a pinned wait ends after Tunables.Budget. Nothing waits for another
//	    thread to finish a step: N6 lets the slower of promoter and successor do
//	    the rest, and in mode CLOSING newcomers compete without a queue.
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

	modeQ       = 0 << 4
	modeHQ      = 1 << 4
	modeClosing = 2 << 4
	modeMask    = 3 << 4

	qOnly  = 1 << 6
	waking = 1 << 7

	refShift = 8
	refMask  = 0xffffff << refShift
)

const (
	maxLosses = 16 // races lost to barging after which a head loses its patience
	// A lone waiter is that much more patient than the head of a queue: nobody else
	// waits, and each change of owners costs the lines of what the lock guards.
	lonePatience = 4

	starving = 1_000_000 // ns: total wait after which a head sets nosteal at once, as long as sync.Mutex waits
)

// A Lock is a spin lock for pinned sections. The zero value is unlocked, in mode
// Q, and may go to mode HQ. It must not be copied after first use.
//
// In the terminology of the Go memory model, the n'th call of an Unlock method
// synchronizes before the m'th call of a Lock method returns, for n < m.
// No method allocates unless it has to sleep.
type Lock struct {
	word lockWord
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
// free or somebody starves for it.
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
	if race.Enabled {
		race.Acquire(unsafe.Pointer(l))
	}
}

// TryLockPinned locks l if it is free and nobody starves for it, for a caller that
// has pinned itself. It never waits, so the caller may hold other Locks.
//
//go:norace
func (l *Lock) TryLockPinned() bool {
	if !l.barge() {
		return false
	}
	if race.Enabled {
		race.Acquire(unsafe.Pointer(l))
	}
	return true
}

// barge takes the word if it is free, past those who queue, unless the head has
// asked for it.
//
//go:norace
func (l *Lock) barge() bool {
	for w := l.word.Load(); w&(locked|nosteal) == 0; w = l.word.Load() {
		if l.word.CompareAndSwap(w, w|locked) { // T1
			return true
		}
	}
	return false
}

// UnlockPinned unlocks l and leaves the caller pinned.
//
//go:norace
func (l *Lock) UnlockPinned() {
	if race.Enabled {
		race.Release(unsafe.Pointer(l))
	}
	if w := l.word.Add(^uint32(0)); w&(locked|parked) != 0 { // T2
		l.unlockSlow(w)
	}
}

// SetHQ says whether l may go to mode HQ, which a new Lock may. A lock that is in
// it when that is forbidden leaves it, at the latest when its queue is empty, and
// gives back what it has taken from the bounded supply of that mode: locks whose
// memory goes out of use should be told so. SetHQ may be called at any time, also
// by the holder.
//
//go:norace
func (l *Lock) SetHQ(allowed bool) {
	if allowed {
		l.word.And(^uint32(qOnly)) // T18
		return
	}
	l.word.Or(qOnly)   // T18
	w := l.word.Load() // after it: R6
	if w&modeMask == modeHQ && !mutant("hq: forbidding leaves it to others") {
		pin()
		l.deflate(w >> refShift)
		unpin()
	}
}

// InHQ reports whether l is in mode HQ at present.
//
//go:norace
func (l *Lock) InHQ() bool { return l.word.Load()&modeMask != modeQ }

// lockSlow takes l however long it takes: spin pinned for a bounded time, sleep
// unpinned, again.
//
//go:noinline
//go:norace
func (l *Lock) lockSlow() {
	if l.barge() { // the word of a lock that is q only, or in mode HQ, is never 0
		return
	}
	race.Disable() // queue nodes and sleepers are shared by unrelated locks
	begin := nanotime()
	var s *sleeper // what the caller was in its last sleep
	taken := l.spin(begin, true)
	for !taken {
		unpin()
		s = l.sleep(s)
		Locate()
		pin()
		// Not in a function of its own: a frame may be what doubles the stack.
		if s.called {
			taken = l.spinBeside(0, 1)
		} else {
			taken = l.spin(begin, false)
		}
	}
	if s != nil {
		l.awake(s)
	}
	race.Enable()
}

// spin tries to take l within a budget. A caller that has slept already is no
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
		case w&(refMask|modeMask|pending|nosteal) == 0:
			if l.word.CompareAndSwap(w, w|pending) { // T3
				return l.spinBeside(pending, lonePatience)
			}
		default:
			return l.spinQueued(begin)
		}
	}
}

// spinBeside waits without a place in the queue and lets others barge for so many
// times the patience of a head: the lone waiter, whose bit is pending, or the one
// sleeper that has been called. That one has waited longer than all who are queued,
// and would be late again behind them.
//
//go:norace
func (l *Lock) spinBeside(bit uint32, patience int64) bool {
	t := tuned()
	watch := start(t.budget)
	mine := bit | nosteal
	if mutant("hq: lone waiter keeps others out") {
		mine = bit
	}
	for i := 1; ; i++ {
		w := l.word.Load()
		if w&locked == 0 {
			if l.word.CompareAndSwap(w, w&^mine|locked) { // T4, or T1 with T11
				return true
			}
			continue
		}
		pause(1)
		if i%clockEvery != 0 {
			continue
		}
		if watch.late() {
			l.word.And(^mine) // T5, T11
			watch.stop(tallyHere())
			return false
		}
		if w&nosteal == 0 && watch.now-watch.began > patience*t.patience {
			l.word.Or(nosteal) // T10
		}
	}
}

// spinQueued waits in the queue, or in that of a cohort and then in the lock's
// for all of it, and then as the head.
//
//go:norace
func (l *Lock) spinQueued(begin int64) bool {
	t := tuned()
	w := wait{lock: l, tuned: t, domain: here(), watch: start(t.budget)}
	w.node = claim(w.now)
	if w.node == 0 {
		return l.spinUnqueued(&w.watch)
	}
	w.tally = tallyOf(w.node)
	w.starved = w.began-begin > starving
	if !w.enqueue() {
		node(w.node).state.Store(free) // N12
		return l.spinUnqueued(&w.watch)
	}
	end := w.await(w.node)
	if end == turn && w.cohort != nil {
		end = w.lead()
	}
	if end == nodeless {
		return l.spinUnqueued(&w.watch)
	}
	got := end == turn && w.compete()
	w.stop(w.tally)
	return got
}

// spinUnqueued waits without a node: all nodes of this P are still linked
// somewhere, or its number is beyond the nodes there are, or the lock is in mode
// CLOSING.
//
//go:norace
func (l *Lock) spinUnqueued(watch *watch) bool {
	for backoff := uint32(1); ; {
		if w := l.word.Load(); w&(locked|nosteal) == 0 && l.word.CompareAndSwap(w, w|locked) { // T1
			return true
		}
		pause(backoff)
		if backoff < maxBackoff {
			backoff *= 2
		}
		if watch.late() {
			watch.stop(tallyHere())
			return false
		}
	}
}
