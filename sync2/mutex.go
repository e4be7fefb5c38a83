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
// under contention. While a woken goroutine is on its way, unlocks wake nobody
// else, and goroutines queue without setting the parked bit: it will look. So
// state is 0 or 1 most of the time also under contention, and fast paths stay
// fast. A waiter that has waited long is handed the mutex.
//
// # Words
//
//	state
//	bit  name    set by                     cleared by                may be stale?
//	0    locked  whoever takes the mutex,   Unlock                    no
//	             or a waker, for a waiter
//	1    parked  a waiter before it queues  wake (T6)                 may be set with nobody queued; must not be clear
//	                                                                  while somebody is, except as in I1
//
//	tag
//	0          quiet: nobody is queued, nor will be before tag has been set
//	bits 0-15  1 + the NUMA node whose buckets the waiters are in
//	bit 16     awake: a woken waiter will look at state and queue after it has cleared the bit. May be lost, must not be
//	           left (I3). Set by wake for the waiter that it wakes.
//	bits 17-31 unlocks since somebody last had to wait, written by the owner only
//
// # Transitions (parked, locked; awake where it matters)
//
//	T1  (0,0) -> (0,1)    CAS    Lock           fast path
//	T2  (p,0) -> (p',1)   CAS    contend, linger, TryLock  barging; p' = 1 if a duty to wake is held
//	T4  (p,1) -> (p,0)    add    Unlock         contended, or no asymmetric unlock here
//	T5  (0,1) -> (1,1)    CAS    contend, announce  before queuing, unless awake is set for another; for those whom a
//	                                            Broadcast moves here
//	T6  (1,0) -> (0,0)    CAS    wake           take the right to wake one
//	T7  (p,0) -> (p,1)    CAS    handOff        under the bucket lock
//	T9  (p,x) -> (1,x)    CAS    giveUp         deadline or context, with a duty to wake
//	T10 (p,1) -> (0,0)    store  Unlock         quiet: plain; wipes parked if a waiter was just setting it
//	T11 (p,1) -> (1,1)    CAS    wakeRaced      leave the wake-up to the owner
//	T15 (p,1) -> (1,1)    or     settle         an awake one who owns the mutex found somebody queued
//	tag T12 0 -> node        CAS    setTag      the setter; fences, then looks
//	tag T13 node -> 0        store  quiet       the owner, under the bucket lock, with nobody queued
//	tag T14 node, n -> node, n' store calm, quiet, lockSlow, lockWoken  the owner, if awake is clear: n' = n + 1, or 0. Plain: it
//	                                            leaves the store buffer before T4 or T10, which come later from the same
//	                                            owner. It may wipe awake, and never sets it.
//	tag T3  awake 0 -> 1     CAS    wake        after T6, for the waiter about to be woken
//	tag T8  awake 1 -> 0     and    rest, wake  its holder, who then looks if it owes no wake-up anyway; or under the bucket
//	                                            lock, with nobody queued
//
// # Invariants
//
//	I1  Somebody queued => locked and parked, or one of: an unlocker between T4 or T10 and the end of its wake; an awake
//	    waiter that has not looked (I3); a signal with More under way; a setter that has not looked yet.
//	I2  A goroutine queues only if, under the bucket lock, it sees its node in tag, and then locked in state, and parked
//	    there or awake in the same tag. In this order: the other one validates a tag of a later episode against a state
//	    of an earlier one.
//	I3  awake set => its holder will clear it, and then acquire, announce, or look at state and at the bucket's count.
//	I4  Queued waiters are all in the buckets of tag's node; tag does not become 0 while one is queued.
//	I5  At rest state is 0, but for parked; tag may have any value.
//
// # Duty to wake
//
// Who takes the parked bit away (T6) wakes a waiter, who is then awake: he owes a
// wake-up if others stayed queued (Result.More), else he will look, and owes one if
// somebody has queued. So does a waiter whom wakeRaced woke while others stayed
// queued, and a setter that found somebody queued when it looked. They pay by
// setting parked when they acquire (T2, T15), announce (T5) or give up (T9); in the
// last case, if they find the mutex free, by waking somebody themselves.
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
//	T8                  before the load of the count                  the waiter's count, raised before I2
//	                                        atomic and
//	token of T7         release/acquire     unpark                    return of Park
//
// # Progress and fairness
//
// Newcomers barge. A contender who finds that the sections are short tries rarely:
// owners then run at full speed in turns of a few microseconds, where more tries
// would only move the cache line to and fro (spin.go). A waiter that was woken and
// lost goes back to the front. If it has waited for 1 ms by then, as long as with
// package sync, the next unlock that wakes hands the mutex over and yields its P to
// it, but not more often than once in a slice (Tunables.Slice). It is the waiter
// that looks at the clock, not who wakes it.
//
// # Not guaranteed
//
// FIFO order among waiters of less than 1 ms. That two Unlocks which overlap in
// time are both reported when only one was due: a plain store cannot tell.

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
)

const (
	tagNode  = 1<<16 - 1 // 1 + NUMA node
	tagAwake = 1 << 16   // somebody is awake and will look. May be lost, must not be left (I3).
	tagCalm  = 1 << 17   // one unlock without a waiter
)

// overtaken is the token of a waiter to whom the mutex is to be handed.
const overtaken parking.ParkToken = 1

// Tokens of waiters that are woken.
const (
	wokenByCond parking.UnparkToken = iota // by a Cond; the mutex knows nothing about it
	wokenPlain                             // look again
	wokenAwake                             // look again; you hold awake
	handedOff                              // you own the mutex (T7)
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
		storeBetweenLoads(&m.state, 0)
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
	awake bool // this goroutine holds awake
	duty  bool // this goroutine owes a wake-up: see above
	spin
	since int64 // when it first parked, in monotonic ns; 0 = not yet
	ticks int64 // the same in cputicks
}

// pay returns s with what c owes.
func (c *contender) pay(s uint32) uint32 {
	if c.duty && !mutant("mutex: duty not paid") {
		s |= mutexParked
	}
	return s
}

// rest clears awake if c holds it. It returns the node of the tag, or 0 if c did
// not hold it.
func (m *Mutex) rest(c *contender) (node uint32) {
	if !c.awake {
		return 0
	}
	c.awake = false
	if mutant("mutex: awake stays") {
		return 0
	}
	return m.tag.And(^uint32(tagAwake)) & tagNode // T8
}

// look is rest, and reports whether somebody is queued for whom c then must set
// parked, unless it has a duty to do so anyway.
func (m *Mutex) look(c *contender) bool {
	node := m.rest(c)
	return node != 0 && !c.duty && table().Waiting(m.key(node)) && !mutant("mutex: awake does not look")
}

// settle ends what c owes and holds now that it owns m, but for what T2 has paid.
func (m *Mutex) settle(c *contender) {
	noteTaken(m)
	if m.look(c) {
		m.state.Or(mutexParked) // T15
	}
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
		if t := m.tag.Load(); ok && t >= tagCalm && t&tagAwake == 0 {
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
				m.settle(c)
				return true
			}
		case c.patient(m):
			if m.linger(c) {
				m.settle(c)
				return true
			}
		case l.reached():
			m.giveUp(c)
			return false
		default:
			t := m.tag.Load()
			if t == 0 {
				m.setTag(c)
				continue
			}
			if t&tagAwake == 0 || c.awake || c.duty {
				if announced := c.pay(s) | mutexParked; s != announced && !m.state.CompareAndSwap(s, announced) { // T5
					continue
				}
				m.rest(c) // parked is set
			}
			switch m.park(c, t&tagNode, l) {
			case acquired:
				return true
			case expired:
				m.giveUp(c)
				return false
			}
		}
	}
}

// linger waits and then tries to take m without a look at it, which would cost
// another trip of the cache line.
func (m *Mutex) linger(c *contender) bool {
	pauseFor(c.pause)
	begin := cputicks()
	taken := m.state.CompareAndSwap(0, c.pay(mutexLocked)) // T2
	noteTry(m, begin)
	return taken
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
	if isOvertaken(c.since) {
		opts.Token = overtaken
	}
	l.apply(&opts)
	queued := func() bool { return m.mayQueue(node) }
	switch r := table().Park(m.key(node), queued, nil, nil, &opts); r.Outcome {
	case parking.Invalid:
		return retry // the duty, if any, is still ours
	case parking.Unparked:
		c.awake, c.spin, c.since = r.Token != wokenPlain, spin{}, r.Since
		c.duty = r.More && r.Token != handedOff // T7 pays nothing: who has been handed m will look
		if r.Token == handedOff {
			m.settle(c)
			return acquired
		}
		return retry
	}
	c.duty = false // queued waiters owe nothing, and hold nothing
	return expired
}

// mayQueue is I2, to be asked under the bucket lock.
func (m *Mutex) mayQueue(node uint32) bool {
	t := m.tag.Load()
	s := m.state.Load()
	sameNode := t&tagNode == node || mutant("mutex: tag not validated") || t&tagNode != 0 && mutant("mutex: any tag validated")
	held := s&mutexLocked != 0 && (s&mutexParked != 0 || t&tagAwake != 0) || mutant("mutex: state not validated")
	return sameNode && held
}

// giveUp pays what c owes without acquiring.
func (m *Mutex) giveUp(c *contender) {
	if m.look(c) {
		c.duty = true
	}
	for {
		s := m.state.Load()
		n := c.pay(s)
		if s == n || m.state.CompareAndSwap(s, n) { // T9
			if !mutant("mutex: leaver drops its duty") && n&(mutexLocked|mutexParked) == mutexParked {
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
		if s&(mutexLocked|mutexParked) != mutexParked {
			return 0, false // whoever locked it sees parked
		}
		t := m.tag.Load()
		if t&tagAwake != 0 {
			return 0, false // I3
		}
		table().Prefetch(m.key(t & tagNode))
		if !m.state.CompareAndSwap(s, s&^mutexParked) { // T6
			continue
		}
		// After T6: the right just taken may be one of a later episode, on another node.
		t = m.tag.Load()
		for t != 0 && !m.tag.CompareAndSwap(t, t|tagAwake) { // T3
			t = m.tag.Load()
		}
		if t == 0 {
			continue
		}
		r := table().UnparkOneFor(skip+1, m.key(t&tagNode), func(r parking.UnparkResult) parking.UnparkToken {
			switch {
			case r.Unparked == 0 && !mutant("mutex: handed over to nobody"):
				m.tag.And(^uint32(tagAwake)) // T8; nobody can have queued because of it
			case (r.Token == overtaken || mutant("mutex: handed over to nobody")) && mayHandOver(m) && m.handOff():
				handed = true
				return handedOff
			}
			return wokenAwake
		})
		if r.Unparked != 0 {
			return r.Delay, handed
		}
		// Look again: somebody may have announced himself meanwhile.
	}
}

// handOff locks m for the waiter that is being woken, unless somebody barged.
func (m *Mutex) handOff() bool {
	for {
		s := m.state.Load()
		if s&mutexLocked != 0 {
			return false
		}
		if m.state.CompareAndSwap(s, s|mutexLocked) { // T7
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
	if node := m.tag.Load() & tagNode; node != 0 && table().Waiting(m.key(node)) {
		table().UnparkOneFor(2, m.key(node), func(parking.UnparkResult) parking.UnparkToken { return wokenPlain })
	}
}

// calm counts an unlock for which nobody had to wait, and makes m quiet after
// many of them. The caller owns m and has read t from tag, which nobody else
// writes while it is not 0.
func (m *Mutex) calm(t uint32) {
	switch {
	case t&tagAwake != 0: // not calm
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
