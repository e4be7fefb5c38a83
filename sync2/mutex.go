//go:build !sync2_std

// Mutex: one word of state, waiters in the parking table.
//
// # Background
//
// The parking-lot mutex of WebKit with three changes. The unlock that wakes
// somebody takes the parked bit away, and the woken goroutine sets it again if
// others are queued (a cascade): a bit that stays set while anybody is queued
// sends every unlock into the bucket and costs 2-40x under contention. While a
// waiter is awake, unlocks wake nobody else (the awake bit). And a waiter that
// has waited long is handed the mutex.
//
// # State word
//
//	bit  name    set by                     cleared by                may be stale?
//	0    locked  whoever takes the mutex,   Unlock                    no
//	             or a waker, for a waiter
//	1    parked  a waiter before it queues  wake (T6, T7)             may be set with nobody queued; must not be clear
//	                                                                  while somebody is, except as in I1
//	2    awake   a spinner, or a waker for  its holder (T2, T5),      a hint that wakes may be left out; never set
//	             the waiter that it wakes   wake (T8)                 without a holder who will clear it
//
// # Transitions (parked, awake, locked)
//
//	T1  (0,0,0) -> (0,0,1)  CAS  Lock             fast path
//	T2  (p,a,0) -> (p',a',1) CAS lockSlow         barging; p' = 1 if a duty to wake is held, a' = 0 if awake is held
//	T3  (p,0,1) -> (p,1,1)  CAS  lockSlow         begin to spin as the awake contender
//	T4  (p,a,1) -> (p,a,0)  add  Unlock
//	T5  (p,a,1) -> (1,a',1) CAS  lockSlow         announce, before queuing; a' = 0 if awake is held
//	T6  (1,0,0) -> (0,1,0)  CAS  wake             take the right to wake one
//	T7  (p,1,0) -> (p',0,1) CAS  wake             under the bucket lock: hand over to one that waited long; p' = 1 if
//	                                              others are queued
//	T8  (p,1,x) -> (p,0,x)  and  wake             nobody was found
//	T9  (p,a,x) -> (p',a',x) CAS giveUp           deadline or context; p' and a' as in T2
//
// # Invariants
//
//	I1  Somebody queued => locked and parked, or one of: an unlocker between T4 and the end of wake; an awake waiter
//	    with a duty to wake; a signal with More under way.
//	I2  A goroutine queues only if, under the bucket lock, it sees locked and parked.
//	I3  awake set => a spinner, a woken waiter that has not acquired or announced, a signal or a wake under way.
//	I4  Words are 0 when nobody uses the mutex, but for parked.
//
// # Duty to wake
//
// A waiter that was dequeued while others stayed queued (Result.More) owes them
// a wake-up, since T6 took the parked bit. It pays by setting parked when it
// acquires (T2), announces (T5) or gives up (T9); in the last case, if it finds
// the mutex free, by waking somebody itself.
//
// # Ordering
//
//	T1, T2, T7  acquire; T4 release; the token of a handed-over mutex: unpark before return of Park
//	T4 before the load of the bucket's count, the waiter's count before its validation (package parking): a Dekker
//	pair, hence sequentially consistent operations
//
// # Progress and fairness
//
// Newcomers barge. A waiter that was woken and lost goes back to the front. Once
// it has waited handoffAfter the next unlock that wakes hands the mutex over
// and yields its P to it.
//
// # Not guaranteed
//
// FIFO order among waiters of less than handoffAfter.

package sync2

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

const (
	mutexLocked = 1 << iota // somebody owns the mutex. Exact.
	mutexParked             // somebody may be queued. May be set with nobody queued; never clear while somebody is (I1).
	mutexAwake              // a contender is awake and will look by itself. May be lost, must not be left (I3).
)

// handoffAfter is for how long a waiter is overtaken, in ns: the starvation
// threshold of package sync.
const handoffAfter = 1_000_000

// handedOff is the token of a waiter that owns the mutex already (T7).
const handedOff parking.UnparkToken = 1

// A Mutex is a mutual exclusion lock. The zero value is an unlocked mutex. A
// Mutex must not be copied after first use.
//
// In the terminology of the Go memory model, the n'th call to [Mutex.Unlock]
// synchronizes before the m'th call to [Mutex.Lock] returns, for n < m. A
// successful TryLock, TryLockFor or LockContext is a Lock; a failed one
// establishes no such relation.
//
// A locked Mutex is not associated with a particular goroutine. Unlock of an
// unlocked Mutex is a fatal error that cannot be recovered. No method allocates,
// but TryLockFor and LockContext when they have to wait.
type Mutex struct {
	state atomicUint32
	_     uint32 // the node that the waiters are parked on; see the design of node-tagged keys
}

// Lock locks m. If it is locked already, the calling goroutine blocks until it
// is available.
func (m *Mutex) Lock() {
	if !m.state.CompareAndSwap(0, mutexLocked) { // T1
		m.lockSlow(nil)
	}
	if race.Enabled {
		raceAcquire(m)
	}
}

// TryLock tries to lock m and reports whether it succeeded.
func (m *Mutex) TryLock() bool {
	for s := m.state.Load(); s&mutexLocked == 0; s = m.state.Load() {
		if m.state.CompareAndSwap(s, s|mutexLocked) { // T2
			if race.Enabled {
				raceAcquire(m)
			}
			return true
		}
	}
	return false
}

// LockContext locks m, or returns ctx's error with m not locked if ctx ends
// before that. If ctx has ended already it returns the error, also if m is free.
func (m *Mutex) LockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !m.lockWithin(until(ctx)) {
		return ctx.Err()
	}
	return nil
}

// TryLockFor locks m and returns true, or returns false with m not locked if it
// does not become available within d. With d <= 0 it is TryLock.
func (m *Mutex) TryLockFor(d time.Duration) bool {
	return m.TryLock() || d > 0 && m.lockWithin(within(d))
}

func (m *Mutex) lockWithin(l *limit) bool {
	if !m.state.CompareAndSwap(0, mutexLocked) && !m.lockSlow(l) { // T1
		return false
	}
	if race.Enabled {
		raceAcquire(m)
	}
	return true
}

// Unlock unlocks m. It is a fatal error if m is not locked.
func (m *Mutex) Unlock() {
	if race.Enabled {
		raceRelease(m)
	}
	if s := m.state.Add(^uint32(0)); s != 0 { // T4
		m.unlockSlow(s)
	}
}

// A contender is the state of one call of lockSlow.
type contender struct {
	awake bool  // this goroutine holds the awake bit
	duty  bool  // this goroutine owes a wake-up: see above
	since int64 // when it first parked, in monotonic ns; 0 = not yet
	ticks int64 // the same in cputicks
	spins int   // rounds since it last parked
}

// pay returns s with what c owes set and what c holds cleared.
func (c *contender) pay(s uint32) uint32 {
	if c.duty {
		s |= mutexParked
	}
	if c.awake {
		s &^= mutexAwake
	}
	return s
}

// lockSlow locks m and returns true, or gives up at the limit.
func (m *Mutex) lockSlow(l *limit) bool {
	var c contender
	ok := m.contend(&c, l)
	blocked(c.ticks, 1)
	return ok
}

func (m *Mutex) contend(c *contender, l *limit) bool {
	for {
		s := m.state.Load()
		switch {
		case s&mutexLocked == 0:
			if m.state.CompareAndSwap(s, c.pay(s)|mutexLocked) { // T2
				return true
			}
		case (c.awake || s&mutexAwake == 0) && canSpin(c.spins):
			if c.awake || m.state.CompareAndSwap(s, s|mutexAwake) { // T3
				c.awake = true
				c.spins++
				m.spin()
			}
		case l.reached():
			m.giveUp(c)
			return false
		default:
			if announced := c.pay(s) | mutexParked; s == announced || m.state.CompareAndSwap(s, announced) { // T5
				c.awake = false
				switch m.park(c, l) {
				case acquired:
					return true
				case expired:
					m.giveUp(c)
					return false
				}
			}
		}
	}
}

// spinRounds and spinPauses bound one round of spinning.
const (
	spinRounds = 8
	spinPauses = 4
)

// spin waits a little for m to become free.
func (m *Mutex) spin() {
	for range spinRounds {
		pause(spinPauses)
		if m.state.Load()&mutexLocked == 0 {
			return
		}
	}
}

type parkOutcome uint8

const (
	retry    parkOutcome = iota // look again
	acquired                    // handed over
	expired                     // limit reached
)

// park queues the calling goroutine, which has announced itself, and sleeps.
func (m *Mutex) park(c *contender, l *limit) parkOutcome {
	if c.ticks == 0 {
		c.ticks = cputicks()
	}
	opts := parking.Options{Reason: parking.ReasonMutexLock, Front: c.since != 0, Since: c.since, Skip: 3}
	l.apply(&opts)
	queued := func() bool { // I2
		const both = mutexLocked | mutexParked
		return m.state.Load()&both == both
	}
	switch r := table().Park(keyOf(&m.state), queued, nil, nil, opts); r.Outcome {
	case parking.Invalid:
		return retry // the duty, if any, is still ours
	case parking.Unparked:
		if r.Token == handedOff {
			return acquired // T7 has paid
		}
		c.awake, c.duty, c.since, c.spins = true, r.More, r.Since, 0
		return retry
	}
	c.duty = false // queued waiters owe nothing
	return expired
}

// giveUp pays what c owes without acquiring.
func (m *Mutex) giveUp(c *contender) {
	for {
		s := m.state.Load()
		n := c.pay(s)
		if s == n || m.state.CompareAndSwap(s, n) { // T9
			if n&(mutexLocked|mutexParked|mutexAwake) == mutexParked {
				m.wake()
			}
			return
		}
	}
}

// unlockSlow runs after T4 left s.
func (m *Mutex) unlockSlow(s uint32) {
	if s&mutexLocked != 0 {
		fatal("sync: unlock of unlocked mutex")
	}
	if s&(mutexParked|mutexAwake) != mutexParked {
		return // a contender is awake
	}
	waited, handed := m.wake()
	charge(waited, 1)
	if handed {
		yield() // the new owner is next on this P
	}
}

// wake gets rid of one duty to wake somebody, if m is free and nobody is awake.
// It returns for how long the waiter that it woke had waited, and whether it was
// handed the mutex.
func (m *Mutex) wake() (waited int64, handed bool) {
	for {
		s := m.state.Load()
		if s&(mutexLocked|mutexParked|mutexAwake) != mutexParked {
			return 0, false // whoever locked it or is awake sees parked
		}
		if !m.state.CompareAndSwap(s, s&^mutexParked|mutexAwake) { // T6
			continue
		}
		key := keyOf(&m.state)
		if table().Waiting(key) {
			r := table().UnparkOne(key, func(r parking.UnparkResult) parking.UnparkToken {
				handed = r.Unparked != 0 && overdue(r.Waited) && m.handOff(r.More)
				if handed {
					return handedOff
				}
				return 0
			})
			if r.Unparked != 0 {
				return r.Waited, handed
			}
		}
		m.state.And(^uint32(mutexAwake)) // T8, and look again: somebody may have announced himself meanwhile
	}
}

// handOff locks m for the waiter that is being woken, unless somebody barged.
func (m *Mutex) handOff(more bool) bool {
	for {
		s := m.state.Load()
		if s&mutexLocked != 0 {
			return false
		}
		n := s&^mutexAwake | mutexLocked
		if more {
			n |= mutexParked
		}
		if m.state.CompareAndSwap(s, n) { // T7
			return true
		}
	}
}
