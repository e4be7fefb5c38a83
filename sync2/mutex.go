//go:build !sync2_std

// Mutex: two words, waiters in the parking table.
//
// # Background
//
// The parking-lot mutex of WebKit, with four changes.
//
// A quiet mutex, one that nobody waits for, is unlocked by a plain store between
// two loads of tag, where the platform makes that safe (quiet_*.go): no locked
// instruction. The store may then sit in the CPU's store buffer while a waiter
// goes to sleep, and wipe what the waiter wrote into state. So the goroutine
// that makes a mutex contended, by setting tag, forces a fence on every other
// CPU and then looks whether anybody has queued meanwhile: if so it takes on
// the duty to wake. It pays once per episode of contention; unlocks and all
// other waiters pay nothing.
//
// The unlock that wakes somebody takes the parked bit away, and the woken
// goroutine sets it again if others are queued (a cascade): a bit that stays set
// while anybody is queued sends every unlock into the bucket and costs 2-40x
// under contention. While a contender is awake, unlocks wake nobody else (the
// awake bit). And a waiter that has waited long is handed the mutex.
//
// # Words
//
//	state
//	bit  name    set by                     cleared by                may be stale?
//	0    locked  whoever takes the mutex,   Unlock                    no
//	             or a waker, for a waiter
//	1    parked  a waiter before it queues  wake (T6, T7)             may be set with nobody queued; must not be clear
//	                                                                  while somebody is, except as in I1
//	2    awake   a spinner, or a waker for  its holder (T2, T5),      a hint that wakes may be left out, which may get
//	             the waiter that it wakes   wake (T8)                 lost (T10); must not stay set without a holder who
//	                                                                  will clear it
//
//	tag
//	0          quiet: nobody is queued, nor will be before tag has been set
//	bits 0-15  1 + the NUMA node whose buckets the waiters are in
//	bits 16-31 unlocks since somebody last had to wait, written by the owner only
//
// # Transitions (parked, awake, locked)
//
//	T1  (0,0,0) -> (0,0,1)   CAS    Lock           fast path
//	T2  (p,a,0) -> (p',a',1) CAS    contend        barging; p' = 1 if a duty to wake is held, a' = 0 if awake is held
//	T3  (p,0,1) -> (p,1,1)   CAS    contend        begin to spin as the awake contender
//	T4  (p,a,1) -> (p,a,0)   add    Unlock         contended, or no asymmetric unlock here
//	T5  (p,a,1) -> (1,a',1)  CAS    contend        announce, before queuing; a' = 0 if awake is held
//	T6  (1,0,0) -> (0,1,0)   CAS    wake           take the right to wake one
//	T7  (p,1,0) -> (p',0,1)  CAS    handOff        under the bucket lock; p' = 1 if others are queued
//	T8  (p,1,x) -> (p,0,x)   and    wake           nobody was found
//	T9  (p,a,x) -> (p',a',x) CAS    giveUp         deadline or context; p' and a' as in T2
//	T10 (p,a,1) -> (0,0,0)   store  Unlock         quiet: plain; wipes parked and awake if a waiter was just setting them
//	T11 (p,a,1) -> (1,a,1)   CAS    wakeRaced      leave the wake-up to the owner
//	tag T12 0 -> node        CAS    setTag         the setter; fences, then looks
//	tag T13 node -> 0        store  quiet          the owner, under the bucket lock, with nobody queued
//	tag T14 node, n -> node, n' store calm, quiet, lockSlow  the owner: n' = n + 1, or 0. Plain: it leaves the store buffer
//	                                               before T4 or T10, which come later from the same owner
//
// # Invariants
//
//	I1  Somebody queued => locked and parked, or one of: an unlocker between T4 or T10 and the end of its wake; an awake
//	    waiter with a duty to wake; a signal with More under way; a setter that has not looked yet.
//	I2  A goroutine queues only if, under the bucket lock, it sees its node in tag, and then locked and parked in state.
//	    In this order: the other one validates a tag of a later episode against a state of an earlier one.
//	I3  awake set => a spinner, a woken waiter that has not acquired or announced, a signal or a wake under way.
//	I4  Queued waiters are all in the buckets of tag's node; tag does not become 0 while one is queued.
//	I5  At rest state is 0, but for parked; tag may have any value.
//
// # Duty to wake
//
// A waiter that was dequeued while others stayed queued (Result.More) owes them
// a wake-up, since T6 took the parked bit. So does a setter that found somebody
// queued when it looked. It pays by setting parked when it acquires (T2),
// announces (T5) or gives up (T9); in the last case, if it finds the mutex
// free, by waking somebody itself.
//
// # Ordering
//
//	site                needs               uses                      pairs with
//	T1, T2, T7          acquire             atomic                    T4, T10
//	T4                  release, and before the load of the bucket's  the waiter's count, raised before I2
//	                    count               atomic
//	T10                 release; order against the second load of tag HeavyFence of T12
//	                    is not needed: see above
//	wakeRaced           T10 before the load of the count              the waiter's count, raised before I2
//	                                        atomic or, a full fence
//	token of T7         release/acquire     unpark                    return of Park
//
// # Progress and fairness
//
// Newcomers barge. A waiter that was woken and lost goes back to the front. Once
// it has waited for a slice (Tunables.Slice) the next unlock that wakes hands the
// mutex over and yields its P to it.
//
// # Not guaranteed
//
// FIFO order among waiters of less than a slice. That two Unlocks which overlap
// in time are both reported when only one was due: a plain store cannot tell.

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

const (
	tagNode = 1<<16 - 1 // 1 + NUMA node
	tagCalm = 1 << 16   // one unlock without a waiter
)

// Tokens of waiters that are woken.
const (
	wokenPlain parking.UnparkToken = iota // look again
	wokenAwake                            // look again; you hold the awake bit
	handedOff                             // you own the mutex (T7)
)

// A Mutex is a mutual exclusion lock. The zero value is an unlocked mutex. A
// Mutex must not be copied after first use.
//
// In the terminology of the Go memory model, the n'th call to [Mutex.Unlock]
// synchronizes before the m'th call to [Mutex.Lock] returns, for n < m. A
// successful TryLock, TryLockFor or LockContext is a Lock; a failed one
// establishes no such relation.
//
// A locked Mutex is not associated with a particular goroutine. Unlock of an
// unlocked Mutex is a fatal error that cannot be recovered. (Two Unlocks at the
// same time, for one Lock, may go unreported.) No method allocates, but
// TryLockFor and LockContext when they have to wait.
type Mutex struct {
	state atomicUint32
	tag   atomicUint32
}

// Lock locks m. If it is locked already, the calling goroutine blocks until it
// is available.
func (m *Mutex) Lock() {
	if race.Enabled {
		raceRead(&m.state) // whoever overwrites a mutex in use is to be found
	}
	if !m.state.CompareAndSwap(0, mutexLocked) { // T1
		m.lockSlow(nil)
	}
	if race.Enabled {
		raceAcquire(m)
	}
}

// TryLock tries to lock m and reports whether it succeeded.
func (m *Mutex) TryLock() bool {
	if race.Enabled {
		raceRead(&m.state)
	}
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
	if race.Enabled {
		raceRead(&m.state)
	}
	if !m.state.CompareAndSwap(0, mutexLocked) && !m.lockSlow(l) { // T1
		return false
	}
	if race.Enabled {
		raceAcquire(m)
	}
	return true
}

// Unlock unlocks m. It is a fatal error if m is not locked.
//
//go:nosplit
func (m *Mutex) Unlock() {
	if race.Enabled {
		raceRead(&m.state)
		raceRelease(m)
	}
	if !asymmetric() {
		if s := m.state.Add(^uint32(0)); s != 0 { // T4
			m.unlockSlow(s, 1)
		}
		return
	}
	t := m.tag.Load()
	if t == 0 && m.state.Load()&mutexLocked != 0 {
		// T10. It stays between the two loads of tag: the compiler moves nothing across an atomic one.
		storePlain(&m.state, 0)
		if t = m.tag.Load(); t != 0 && !mutant("mutex: no second look at tag") {
			m.wakeRaced()
		}
		return
	}
	m.unlockContended(t)
}

// unlockContended unlocks m when tag was t. It also reports an unlocked m.
//
//go:noinline
func (m *Mutex) unlockContended(t uint32) {
	if t != 0 {
		m.calm(t)
	}
	if s := m.state.Add(^uint32(0)); s != 0 { // T4
		m.unlockSlow(s, 2)
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
	if c.duty && !mutant("mutex: woken waiter does not re-arm") {
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
	if c.ticks != 0 {
		skip := 1
		if l != nil {
			skip = 2 // lockWithin is between
		}
		blocked(c.ticks, skip)
		if t := m.tag.Load(); ok && t > tagNode {
			storePlain(&m.tag, t&tagNode) // T14: not calm, this goroutine had to wait
		}
	}
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
				pause(spinPauses)
			}
		case l.reached():
			m.giveUp(c)
			return false
		default:
			node := m.tag.Load() & tagNode
			if node == 0 {
				m.setTag(c)
				continue
			}
			announced := c.pay(s) | mutexParked
			if s != announced && !m.state.CompareAndSwap(s, announced) { // T5
				continue
			}
			c.awake = false
			switch m.park(c, node, l) {
			case acquired:
				return true
			case expired:
				m.giveUp(c)
				return false
			}
		}
	}
}

// setTag makes m contended. The goroutine that does so, the setter, must fence
// and then look before it does anything else (I1): whoever found tag set in the
// meantime has gone to sleep without a fence of his own.
func (m *Mutex) setTag(c *contender) {
	prepareFence()
	pin() // nobody shall wait for the look longer than the fence takes
	node := hereTag()
	if m.tag.CompareAndSwap(0, node) { // T12
		if mutant("mutex: look before the fence") && table().Waiting(m.key(node)) {
			c.duty = true
		}
		if !mutant("mutex: no fence") {
			heavyFence()
		}
		if !mutant("mutex: setter does not look") && !mutant("mutex: look before the fence") && table().Waiting(m.key(node)) {
			c.duty = true
		}
		noteEpisode(m)
	}
	unpin()
}

// key returns what waiters park on while tag names node.
func (m *Mutex) key(node uint32) parking.Key {
	k := keyOf(&m.state)
	k.Node = node
	return k
}

// spinPauses is how long a contender waits between two looks at the word. Looking
// more often takes the word's cache line away from the owner: the row "Mutex, 2
// goroutines" of go run ./bench shows it.
const spinPauses = 30

type parkOutcome uint8

const (
	retry    parkOutcome = iota // look again
	acquired                    // handed over
	expired                     // limit reached
)

// park queues the calling goroutine, which has announced itself, and sleeps.
func (m *Mutex) park(c *contender, node uint32, l *limit) parkOutcome {
	if c.ticks == 0 {
		c.ticks = cputicks()
	}
	opts := parking.Options{Reason: parking.ReasonMutexLock, Front: c.since != 0, Since: c.since, Skip: 4}
	l.apply(&opts)
	queued := func() bool { // I2
		const both = mutexLocked | mutexParked
		switch {
		case mutant("mutex: tag not validated"):
			return m.state.Load()&both == both
		case mutant("mutex: state not validated"):
			return m.tag.Load()&tagNode == node
		case mutant("mutex: any tag validated"):
			return m.tag.Load()&tagNode != 0 && m.state.Load()&both == both
		}
		return m.tag.Load()&tagNode == node && m.state.Load()&both == both
	}
	switch r := table().Park(m.key(node), queued, nil, nil, &opts); r.Outcome {
	case parking.Invalid:
		return retry // the duty, if any, is still ours
	case parking.Unparked:
		if r.Token == handedOff {
			return acquired // T7 has paid
		}
		c.awake, c.duty, c.since, c.spins = r.Token == wokenAwake, r.More, r.Since, 0
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
				m.wake(3)
			}
			return
		}
	}
}

// unlockSlow runs after T4 left s. Unlock is skip frames above.
func (m *Mutex) unlockSlow(s uint32, skip int) {
	if s&mutexLocked != 0 {
		fatal("sync: unlock of unlocked mutex")
	}
	if s&(mutexParked|mutexAwake) != mutexParked {
		return // nobody is queued, or a contender is awake
	}
	delay, handed := m.wake(skip + 1)
	charge(delay, skip)
	if handed {
		yield() // the new owner is next on this P
	}
}

// wake gets rid of one duty to wake somebody, if m is free and nobody is awake.
// It returns the delay to charge to the caller, and whether the waiter was handed
// the mutex. Who does it is skip frames above, for execution traces.
func (m *Mutex) wake(skip int) (delay int64, handed bool) {
	for {
		s := m.state.Load()
		if s&(mutexLocked|mutexParked|mutexAwake) != mutexParked {
			return 0, false // whoever locked it or is awake sees parked
		}
		if !m.state.CompareAndSwap(s, s&^mutexParked|mutexAwake) { // T6
			continue
		}
		// After T6: the right just taken may be one of a later episode, on another node.
		node := m.tag.Load() & tagNode
		if node != 0 && table().Waiting(m.key(node)) {
			r := table().UnparkOneFor(skip+1, m.key(node), func(r parking.UnparkResult) parking.UnparkToken {
				handed = r.Unparked != 0 && overdue(r.Waited) && m.handOff(r.More)
				if handed {
					return handedOff
				}
				return wokenAwake
			})
			if r.Unparked != 0 {
				return r.Delay, handed
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
		if more && !mutant("mutex: handoff does not re-arm") {
			n |= mutexParked
		}
		if m.state.CompareAndSwap(s, n) { // T7
			return true
		}
	}
}

// wakeRaced runs after T10 if tag was set meanwhile: the store may have wiped
// parked, and nobody else knows. It wakes whatever the awake bit says, which the
// store may have wiped too.
//
//go:noinline
func (m *Mutex) wakeRaced() {
	if !mutant("mutex: race path without a fence") {
		m.state.Or(0) // a full fence: T10 before the load of the count
	}
	for s := m.state.Load(); s&mutexLocked != 0; s = m.state.Load() {
		if m.state.CompareAndSwap(s, s|mutexParked) { // T11
			return
		}
	}
	if node := m.tag.Load() & tagNode; node != 0 {
		table().UnparkOneFor(2, m.key(node), nil)
	}
}

// calm counts an unlock for which nobody had to wait, and makes m quiet after
// many of them. The caller owns m and has read t from tag, which nobody else
// writes while it is not 0.
func (m *Mutex) calm(t uint32) {
	switch {
	case t < calmMost:
		storePlain(&m.tag, t+tagCalm) // T14; T4 drains it
	case quietAllowed(m):
		m.quiet(t & tagNode)
	default:
		storePlain(&m.tag, t&tagNode)
	}
}

// quiet sets tag to 0 if nobody is queued (T13).
//
//go:noinline
func (m *Mutex) quiet(node uint32) {
	storePlain(&m.tag, node)
	nobody := func(parking.ParkToken) parking.FilterOp { return parking.Stop }
	table().UnparkFilter(m.key(node), nobody, func(r parking.UnparkResult) parking.UnparkToken {
		if !r.More || mutant("mutex: quiet without a look at the queue") { // I4
			m.tag.Store(0)
		}
		return 0
	})
}
