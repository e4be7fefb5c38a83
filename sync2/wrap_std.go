//go:build sync2_std

package sync2

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Under this tag the four types wrap those of package sync, so that a service
// can compare, or go back, without touching its code. What the wrapped type
// does, package sync does. The additions are built on its Try methods, by
// polling, and on channels: they keep their contracts but not their speed, and
// RWMutex, Cond and WaitGroup are larger than package sync's.

// A Mutex is a sync.Mutex with the additional methods of this package.
type Mutex struct{ sync.Mutex }

// LockContext locks m, or returns ctx's error with m not locked if ctx ends
// before that. If ctx has ended already it returns the error, also if m is free.
func (m *Mutex) LockContext(ctx context.Context) error { return poll(ctx, m.TryLock) }

// TryLockFor locks m and returns true, or returns false with m not locked if it
// does not become available within d. With d <= 0 it is TryLock.
func (m *Mutex) TryLockFor(d time.Duration) bool { return pollFor(d, m.TryLock) }

// Do locks m, calls f, and unlocks m, also if f panics or calls runtime.Goexit.
func (m *Mutex) Do(f func()) {
	m.Lock()
	defer m.Unlock()
	f()
}

// A RWMutex is a sync.RWMutex with the additional methods of this package.
type RWMutex struct {
	rw   sync.RWMutex
	gate sync.Mutex // held by writers: lets Downgrade change sides with no writer in between
}

// Lock locks rw for writing.
func (rw *RWMutex) Lock() {
	rw.gate.Lock()
	rw.rw.Lock()
}

// TryLock tries to lock rw for writing and reports whether it succeeded.
func (rw *RWMutex) TryLock() bool {
	if !rw.gate.TryLock() {
		return false
	}
	if !rw.rw.TryLock() {
		rw.gate.Unlock()
		return false
	}
	return true
}

// Unlock unlocks rw for writing.
func (rw *RWMutex) Unlock() {
	rw.rw.Unlock()
	rw.gate.Unlock()
}

// RLock locks rw for reading.
func (rw *RWMutex) RLock() { rw.rw.RLock() }

// TryRLock tries to lock rw for reading and reports whether it succeeded.
func (rw *RWMutex) TryRLock() bool { return rw.rw.TryRLock() }

// RUnlock undoes a single RLock.
func (rw *RWMutex) RUnlock() { rw.rw.RUnlock() }

// RLocker returns a Locker whose Lock and Unlock call rw.RLock and rw.RUnlock.
func (rw *RWMutex) RLocker() Locker { return rw.rw.RLocker() }

// LockContext locks rw for writing, or returns ctx's error with rw not locked if
// ctx ends before that. If ctx has ended already it returns the error.
func (rw *RWMutex) LockContext(ctx context.Context) error { return poll(ctx, rw.TryLock) }

// RLockContext locks rw for reading, or returns ctx's error with rw not locked
// if ctx ends before that. If ctx has ended already it returns the error.
func (rw *RWMutex) RLockContext(ctx context.Context) error { return poll(ctx, rw.TryRLock) }

// TryLockFor locks rw for writing and returns true, or returns false with rw not
// locked if it does not become available within d. With d <= 0 it is TryLock.
func (rw *RWMutex) TryLockFor(d time.Duration) bool { return pollFor(d, rw.TryLock) }

// TryRLockFor locks rw for reading and returns true, or returns false with rw
// not locked if no writer makes way within d. With d <= 0 it is TryRLock.
func (rw *RWMutex) TryRLockFor(d time.Duration) bool { return pollFor(d, rw.TryRLock) }

// Downgrade turns the caller's write lock into a read lock, with no moment in
// between at which a writer could get in.
func (rw *RWMutex) Downgrade() {
	rw.rw.Unlock()
	rw.rw.RLock() // waits for nobody: writers are held up at the gate
	rw.gate.Unlock()
}

// A Cond is a sync.Cond with the additional method of this package.
type Cond struct {
	// L is held while observing or changing the condition.
	L Locker

	mu    sync.Mutex
	self  *Cond      // c since its first use; guarded by mu
	cond  sync.Cond  // its L is condLocker{c}
	queue *condQueue // made on first use; its contents are guarded by mu
}

// A condQueue holds the waiters of a Cond, oldest first; nil stands for one in
// the wrapped Cond. It is apart from the Cond because a slice would keep that
// from being compared, which package sync's can be.
type condQueue struct{ waiting []chan struct{} }

// NewCond returns a new Cond with Locker l.
func NewCond(l Locker) *Cond { return &Cond{L: l} }

// A condLocker is c.L for the wrapped Cond. Its Unlock comes right after the
// wrapped Cond has counted the waiter, and so ends the section in which queue
// and the wrapped Cond have to agree.
type condLocker struct{ c *Cond }

func (l condLocker) Lock() { l.c.L.Lock() }
func (l condLocker) Unlock() {
	l.c.mu.Unlock()
	l.c.L.Unlock()
}

// setUp makes c usable and panics if it has been copied since. c.mu is held.
func (c *Cond) setUp() {
	if c.self == nil {
		c.self = c
		c.queue = new(condQueue)
		c.cond.L = condLocker{c}
	}
	if c.self != c {
		c.mu.Unlock()
		panic("sync.Cond is copied")
	}
}

// Wait is as in package sync.
func (c *Cond) Wait() {
	c.mu.Lock()
	c.setUp()
	c.queue.waiting = append(c.queue.waiting, nil)
	c.cond.Wait()
}

// WaitContext is Wait that also returns, with ctx's error, when ctx ends. c.L is
// locked in any case when it returns. A signal is never lost to a waiter whose
// context ended. If ctx has ended already WaitContext returns its error without
// unlocking c.L.
func (c *Cond) WaitContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := make(chan struct{})
	c.mu.Lock()
	c.setUp()
	c.queue.waiting = append(c.queue.waiting, mine)
	c.mu.Unlock()
	c.L.Unlock()
	defer c.L.Lock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.queue.waiting {
		if other == mine {
			c.queue.waiting = slices.Delete(c.queue.waiting, i, i+1)
			return ctx.Err()
		}
	}
	return nil // a signal came first
}

// Signal wakes the goroutine that has waited on c the longest, if there is any.
func (c *Cond) Signal() {
	c.mu.Lock()
	c.setUp()
	defer c.mu.Unlock()
	if len(c.queue.waiting) == 0 {
		return
	}
	c.wake(c.queue.waiting[0])
	c.queue.waiting = slices.Delete(c.queue.waiting, 0, 1)
}

// Broadcast wakes all goroutines waiting on c.
func (c *Cond) Broadcast() {
	c.mu.Lock()
	c.setUp()
	defer c.mu.Unlock()
	for _, w := range c.queue.waiting {
		c.wake(w)
	}
	c.queue.waiting = nil
}

func (c *Cond) wake(w chan struct{}) {
	if w == nil {
		c.cond.Signal()
	} else {
		close(w)
	}
}

// A WaitGroup is a sync.WaitGroup with the additional method of this package.
type WaitGroup struct {
	wg    sync.WaitGroup
	count atomic.Int64 // the wrapped counter, which cannot be read
}

// Add adds delta, which may be negative, to the counter.
func (wg *WaitGroup) Add(delta int) {
	if delta > 0 {
		wg.count.Add(int64(delta))
	}
	wg.wg.Add(delta)
	if delta < 0 {
		wg.count.Add(int64(delta))
	}
}

// Done decrements the counter by one.
func (wg *WaitGroup) Done() { wg.Add(-1) }

// Wait blocks until the counter is zero.
func (wg *WaitGroup) Wait() { wg.wg.Wait() }

// WaitContext blocks until the counter is zero and returns nil, or until ctx
// ends and returns its error. If both hold already, it returns nil.
func (wg *WaitGroup) WaitContext(ctx context.Context) error {
	for wg.count.Load() != 0 {
		if err := poll(ctx, func() bool { return wg.count.Load() == 0 }); err != nil {
			return err
		}
	}
	wg.wg.Wait()
	return nil
}

// Go calls f in a new goroutine and adds that task to the WaitGroup.
func (wg *WaitGroup) Go(f func()) {
	wg.Add(1)
	go func() {
		defer func() {
			if x := recover(); x != nil {
				panic(x)
			}
			wg.Done()
		}()
		f()
	}()
}

const (
	pollFirst = 10 * time.Microsecond
	pollMost  = time.Millisecond
)

// poll calls try, at growing intervals, until it succeeds or ctx ends.
func poll(ctx context.Context, try func() bool) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for interval := pollFirst; ; interval = min(2*interval, pollMost) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if try() {
			return nil
		}
		pause.Reset(interval)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// pollFor is poll for at most d, with one try in any case.
func pollFor(d time.Duration, try func() bool) bool {
	deadline := time.Now().Add(d)
	for interval := pollFirst; !try(); interval = min(2*interval, pollMost) {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		time.Sleep(min(interval, left))
	}
	return true
}

// What sync.Mutex does cannot be tuned.

func asymmetric() bool { return false }

func switchAsymmetric(on bool) bool { return on == asymmetric() }
