package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// Timed are the optional timed forms of a lock. They are exercised wherever a lock under test has them.
type Timed interface {
	// TryLockFor gives up after d and reports whether the lock is held.
	TryLockFor(d time.Duration) bool
	// LockContext returns the context's error, the lock not held, or nil, the lock held.
	LockContext(ctx context.Context) error
}

// MutexChecks returns the checks of an exclusive lock.
func MutexChecks() []Check[Mutex] {
	return []Check[Mutex]{
		{"NewLockIsFree", 0, newLockIsFree},
		{"TryLockFailsAtOnceWhileHeld", Blocking, tryLockFailsAtOnce},
		{"Exclusion", 0, func(o Options, l Mutex) error { return exclusion(o, l, true) }},
		{"ExclusionByTheLockAlone", 0, func(o Options, l Mutex) error { return exclusion(o, l, false) }},
		{"BurstsOfArrivalsAllLeave", 0, bursts},
		{"SleepersAreAllWoken", Blocking, sleepersAreAllWoken},
		{"AnotherGoroutineMayUnlock", Blocking | AnyUnlocker, anotherGoroutineMayUnlock},
		{"SleepersAcquireInOrder", Blocking | FIFO, sleepersAcquireInOrder},
		{"HogDoesNotStarveAWaiter", Blocking | Fair, hogDoesNotStarve},
		{"TimedFormsKeepTheirWord", Blocking, timedFormsKeepTheirWord},
		{"TimedStorm", Blocking, timedStorm},
	}
}

func newLockIsFree(o Options, l Mutex) error {
	for i := range 3 {
		if !l.TryLock() {
			return fmt.Errorf("free: TryLock %d of a lock that nobody holds failed", i)
		}
		if l.TryLock() {
			return errors.New("exclusion: TryLock of a held lock succeeded")
		}
		l.Unlock()
	}
	l.Lock()
	if l.TryLock() {
		return errors.New("exclusion: TryLock succeeded after Lock")
	}
	l.Unlock()
	return isFree(l)
}

// isFree checks that nothing is left of earlier use.
func isFree(l Mutex) error {
	if !l.TryLock() {
		return errors.New("free: TryLock failed after everybody had left")
	}
	l.Unlock()
	return nil
}

func free(l Mutex) func() error     { return func() error { return isFree(l) } }
func rwFree(l RWMutex) func() error { return func() error { return rwIsFree(l) } }

func tryLockFailsAtOnce(o Options, l Mutex) error {
	l.Lock()
	var won atomic.Int32
	s := Start(func() {
		for range 1000 {
			if l.TryLock() {
				won.Add(1)
			}
		}
	})
	err := s.WaitEnded(o.Patience)
	if err == nil && won.Load() != 0 {
		err = fmt.Errorf("exclusion: %d of 1000 TryLocks of a held lock succeeded", won.Load())
	}
	if err == nil {
		l.Unlock()
		err = isFree(l)
	}
	return err
}

// acquire takes l in one of the ways it offers and reports whether it holds it.
func acquire(o Options, l Mutex, r *rand.Rand) bool {
	n := r.IntN(16)
	if t, ok := l.(Timed); ok && o.Lacks&Blocking == 0 {
		switch n {
		case 0:
			return t.TryLockFor(time.Duration(r.IntN(100)-10) * time.Microsecond)
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(100))*time.Microsecond)
			defer cancel()
			return t.LockContext(ctx) == nil
		}
	}
	if n < 5 {
		return l.TryLock()
	}
	l.Lock()
	return true
}

func exclusion(o Options, l Mutex, counted bool) error {
	c := newCrew(o)
	room := c.newRoom(counted)
	c.loop(c.Goroutines, func(id int, r *rand.Rand) error {
		if !acquire(o, l, r) {
			runtime.Gosched()
			return nil
		}
		if err := room.write(id, func() { c.pause(r) }); err != nil {
			return err
		}
		l.Unlock()
		c.pause(r)
		return nil
	})
	return first(c.run, room.audit, free(l))
}

// bursts lets everybody arrive at once, round after round: what is lost at the end of a round is never found by a
// later unlock.
func bursts(o Options, l Mutex) error {
	end := time.Now().Add(o.Duration)
	for round := 0; time.Now().Before(end); round++ {
		c := newCrew(o)
		room := c.newRoom(true)
		gate := make(chan struct{})
		for id := range c.Goroutines {
			r := o.rng(round*c.Goroutines + id)
			c.start(func() error {
				<-gate
				for range 1 + r.IntN(4) {
					l.Lock()
					if err := room.write(id, func() { work(r.IntN(32)) }); err != nil {
						return err
					}
					l.Unlock()
				}
				return nil
			})
		}
		close(gate)
		if err := first(c.wait, room.audit, free(l)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// asleep starts n goroutines that one after another fall asleep in f.
func asleep(o Options, n int, f func(id int)) ([]*Sleeper, error) {
	var all []*Sleeper
	for id := range n {
		s := Start(func() { f(id) })
		if err := s.WaitAsleep(o.Patience); err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

func allEnd(o Options, all []*Sleeper) error {
	for _, s := range all {
		if err := s.WaitEnded(o.Patience); err != nil {
			return err
		}
	}
	return nil
}

func sleepersAreAllWoken(o Options, l Mutex) error {
	for n := 1; n <= 20; n += 1 + n/2 {
		c := newCrew(o)
		room := c.newRoom(true)
		room.writes = make([]uint64, n)
		l.Lock()
		all, err := asleep(o, n, func(id int) {
			l.Lock()
			if err := room.write(id, func() { work(10) }); err != nil {
				c.fail(err)
			}
			l.Unlock()
		})
		if err != nil {
			return err
		}
		l.Unlock()
		if err := first(func() error { return allEnd(o, all) }, c.err, room.audit, free(l)); err != nil {
			return fmt.Errorf("%d sleepers: %w", n, err)
		}
	}
	return nil
}

func anotherGoroutineMayUnlock(o Options, l Mutex) error {
	l.Lock()
	waiter := Start(func() { l.Lock() })
	if err := waiter.WaitAsleep(o.Patience); err != nil {
		return err
	}
	if err := allEnd(o, []*Sleeper{Start(l.Unlock), waiter}); err != nil {
		return err
	}
	return errors.Join(Start(l.Unlock).WaitEnded(o.Patience), isFree(l))
}

func sleepersAcquireInOrder(o Options, l Mutex) error {
	const n = 12
	var order []int
	l.Lock()
	all, err := asleep(o, n, func(id int) {
		l.Lock()
		order = append(order, id)
		l.Unlock()
	})
	if err != nil {
		return err
	}
	l.Unlock()
	if err := allEnd(o, all); err != nil {
		return err
	}
	for i, id := range order {
		if i != id {
			return fmt.Errorf("order: goroutines that fell asleep as 0 to %d acquired as %v", n-1, order)
		}
	}
	return isFree(l)
}

// hogDoesNotStarve wants ten acquisitions against a goroutine that holds the lock nearly all the time.
func hogDoesNotStarve(o Options, l Mutex) error {
	c := newCrew(o)
	var turns atomic.Int64
	c.start(func() error {
		for !c.stop.Load() {
			l.Lock()
			if turns.Add(1)%8 == 0 {
				time.Sleep(50 * time.Microsecond)
			} else {
				work(500)
			}
			l.Unlock()
		}
		return nil
	})
	victim := Start(func() {
		for range 10 {
			time.Sleep(100 * time.Microsecond)
			l.Lock()
			l.Unlock()
		}
	})
	err := victim.WaitEnded(o.Patience)
	c.stop.Store(true)
	if err != nil {
		return fmt.Errorf("starved while another goroutine acquired %d times: %w", turns.Load(), err)
	}
	return c.wait()
}

func timedFormsKeepTheirWord(o Options, l Mutex) error {
	t, ok := l.(Timed)
	if !ok {
		return nil
	}
	if !t.TryLockFor(time.Millisecond) {
		return errors.New("timed: TryLockFor of a free lock failed")
	}
	if err := timedAgainstHeld(o, t); err != nil {
		return err
	}
	l.Unlock()
	if err := t.LockContext(context.Background()); err != nil {
		return fmt.Errorf("timed: LockContext of a free lock: %w", err)
	}
	l.Unlock()
	return isFree(l)
}

// timedAgainstHeld checks the timed forms of a lock that stays held.
func timedAgainstHeld(o Options, t Timed) error {
	// The last is longer than a busy machine keeps a goroutine from noticing that it gave up early.
	for _, d := range []time.Duration{-time.Second, 0, 5 * time.Millisecond, 50 * time.Millisecond} {
		var got bool
		var took time.Duration
		attempt := Start(func() {
			start := time.Now()
			got = t.TryLockFor(d)
			took = time.Since(start)
		})
		if err := attempt.WaitEnded(o.Patience); err != nil {
			return fmt.Errorf("timed: TryLockFor(%v): %w", d, err)
		}
		if got || took < d {
			return fmt.Errorf("timed: TryLockFor(%v) of a held lock returned %v after %v", d, got, took)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	s := Start(func() { err = t.LockContext(ctx) })
	if err := s.WaitAsleep(o.Patience); err != nil {
		return err
	}
	cancel()
	if err := s.WaitEnded(o.Patience); err != nil {
		return fmt.Errorf("timed: LockContext after cancel: %w", err)
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("timed: a cancelled LockContext returned %v, want %v", err, context.Canceled)
	}
	return nil
}

// timedStorm mixes waiters that give up at the worst moments with waiters that never do. The latter must all get
// through: a waiter that leaves may not take a wake-up with it.
func timedStorm(o Options, l Mutex) error {
	t, ok := l.(Timed)
	if !ok {
		return nil
	}
	end := time.Now().Add(o.Duration)
	for round := 0; time.Now().Before(end); round++ {
		c := newCrew(o)
		room := c.newRoom(true)
		for id := range c.Goroutines {
			r := o.rng(round*c.Goroutines + id)
			c.start(func() error {
				for range 8 {
					if !acquireImpatiently(l, t, id, r) {
						continue
					}
					if err := room.write(id, func() { c.pause(r) }); err != nil {
						return err
					}
					l.Unlock()
				}
				return nil
			})
		}
		if err := first(c.wait, room.audit, free(l)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// acquireImpatiently uses the timed forms, except for every fourth worker.
func acquireImpatiently(l Mutex, t Timed, id int, r *rand.Rand) bool {
	d := time.Duration(r.IntN(200)) * time.Microsecond
	switch id % 4 {
	case 0:
		l.Lock()
		return true
	case 1:
		return t.TryLockFor(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(d, cancel)
	defer timer.Stop()
	return t.LockContext(ctx) == nil
}
