//go:build !sync2_std

// Cond: waiters in the parking table under the address of the Cond. There is no
// word of state: whether anybody waits is the count of the table's bucket.
//
//	I1  A waiter is queued before it unlocks L, so a Signal or Broadcast by
//	    whoever locks L next finds it.
//	I2  Only Signal and Broadcast dequeue, but for a waiter whose context ended:
//	    it dequeues itself, or finds that a signal came first and takes it.
//	I3  A waiter that Broadcast has moved into the queue of L (morph.go) is woken
//	    by an unlock of L. If its context ends there, it leaves that queue; nobody
//	    misses the signal, since everybody else has been moved or woken too.
//	I4  Where nobody is moved, those who have to lock the same Mutex are woken in
//	    turn, each by the one before it, once that has locked it: until then they
//	    could but wait for it.
//
// In a synctest bubble nobody is moved: a waiter blocks durably in Wait, and
// would go on to do so while it waits for L, whose holder may be outside.

package sync2

import (
	"context"

	"github.com/hqsync/hqsync/parking"
)

// Cond implements a condition variable, a rendezvous point for goroutines
// waiting for or announcing the occurrence of an event.
//
// Each Cond has an associated Locker L, often a *Mutex or *RWMutex, which must
// be held when changing the condition and when calling Wait. A Cond must not be
// copied after first use; its methods then panic.
//
// In the terminology of the Go memory model, a call to [Cond.Broadcast] or
// [Cond.Signal] synchronizes before any [Cond.Wait] call that it unblocks.
// Waiters are woken in the order in which they came.
type Cond struct {
	noCopy noCopy

	// L is held while observing or changing the condition.
	L Locker

	self copyChecker // also the word that waiters park on
}

// NewCond returns a new Cond with Locker l.
func NewCond(l Locker) *Cond { return &Cond{L: l} }

// Wait atomically unlocks c.L and suspends the calling goroutine. After it has
// been resumed, Wait locks c.L before returning. Wait cannot return unless woken
// by Broadcast or Signal. Because c.L is not locked while Wait is waiting, the
// caller should Wait in a loop that checks the condition.
func (c *Cond) Wait() {
	c.self.check()
	opts := parking.Options{Reason: parking.ReasonCondWait, Skip: 1, Untimed: true}
	since := cputicks()
	r := table().Park(keyOf(&c.self), nil, c.unlocker(), nil, &opts)
	blocked(since, 0)
	lockWoken(c.L, &r)
}

// WaitContext is Wait that also returns, with ctx's error, when ctx ends. c.L is
// locked in any case when it returns, which it may have to wait for. A signal is
// never lost to a waiter whose context ended: it gets the signal, and nil, or
// the signal goes to another waiter. If ctx has ended already WaitContext
// returns its error without unlocking c.L.
func (c *Cond) WaitContext(ctx context.Context) error {
	c.self.check()
	if err := ctx.Err(); err != nil {
		return err
	}
	opts := parking.Options{Reason: parking.ReasonCondWait, Context: ctx, Skip: 1, Untimed: true}
	since := cputicks()
	r := table().Park(keyOf(&c.self), nil, c.unlocker(), nil, &opts)
	blocked(since, 0)
	lockWoken(c.L, &r)
	if r.Outcome == parking.Canceled {
		return ctx.Err()
	}
	return nil
}

// unlocker returns what releases L once a waiter is queued (I1). Wait and
// WaitContext park by themselves: a frame in between is one more return that the
// CPU mispredicts, having switched stacks since the call.
func (c *Cond) unlocker() func() {
	return func() { c.L.Unlock() }
}

// lockWoken locks l after a wait that ended with r.
func lockWoken(l Locker, r *parking.Result) {
	switch l := l.(type) {
	case *Mutex:
		l.lockWoken(r)
	case *RWMutex:
		l.lockWoken(r)
	default:
		l.Lock()
	}
	r.WakeNext(2) // I4
}

// Signal wakes the goroutine that has waited on c the longest, if there is any.
// It is allowed but not required for the caller to hold c.L.
func (c *Cond) Signal() {
	c.self.check()
	table().UnparkOneFor(1, keyOf(&c.self), nil) // wokenByCond
}

// Broadcast wakes all goroutines waiting on c. It is allowed but not required
// for the caller to hold c.L.
//
// If c.L is a *Mutex or a *RWMutex, waiters that could not lock it yet are woken
// one by one as it becomes free, or as others have locked it. c.L must not be
// replaced while they are waiting.
func (c *Cond) Broadcast() {
	c.self.check()
	key := keyOf(&c.self)
	if !table().Waiting(key) {
		return
	}
	switch m := c.mutex(); {
	case m == nil:
		table().UnparkAllFor(1, key, nil) // wokenByCond
	case many() && !insideBubble():
		m.takeOver(key)
	default:
		table().UnparkInTurnFor(1, key) // I4
	}
}

// mutex returns what whoever locks c.L for itself has to lock first, or nil if
// that is not a Mutex of this package.
func (c *Cond) mutex() *Mutex {
	switch l := c.L.(type) {
	case *Mutex:
		return l
	case *RWMutex:
		return &l.w
	}
	return nil
}

// A copyChecker holds its own address since its first use, to detect that the
// object around it has been copied.
type copyChecker struct{ addr atomicUintptr }

func (c *copyChecker) check() {
	self := parking.AddrOf(c)
	if c.addr.Load() != self && !c.addr.CompareAndSwap(0, self) && c.addr.Load() != self {
		panic("sync.Cond is copied")
	}
}

// A noCopy makes vet's copylocks check report copies of the struct it is in.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
