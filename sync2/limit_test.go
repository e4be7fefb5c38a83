//go:build !sync2_std

package sync2

import (
	"context"
	"testing"
	"time"
)

func TestTimedFormsAllocateNothingWhenUncontended(t *testing.T) {
	var m Mutex
	var rw RWMutex
	var wg WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for name, f := range map[string]func(){
		"Mutex.LockContext":     func() { must(m.LockContext(ctx)); m.Unlock() },
		"Mutex.TryLockFor":      func() { m.TryLockFor(time.Hour); m.Unlock() },
		"RWMutex.LockContext":   func() { must(rw.LockContext(ctx)); rw.Unlock() },
		"RWMutex.RLockContext":  func() { must(rw.RLockContext(ctx)); rw.RUnlock() },
		"RWMutex.TryLockFor":    func() { rw.TryLockFor(time.Hour); rw.Downgrade(); rw.RUnlock() },
		"RWMutex.TryRLockFor":   func() { rw.TryRLockFor(time.Hour); rw.RUnlock() },
		"WaitGroup.WaitContext": func() { must(wg.WaitContext(ctx)) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A deadline that has passed still takes a free lock; a context that has ended
// does not, as in x/sync/semaphore.
func TestLimitThatHasPassed(t *testing.T) {
	var m Mutex
	var rw RWMutex
	if !m.TryLockFor(-1) || !rw.TryLockFor(0) {
		t.Fatal("a free lock was not taken")
	}
	if m.TryLockFor(-1) || rw.TryLockFor(0) || rw.TryRLockFor(-1) {
		t.Fatal("a held lock was taken")
	}
	m.Unlock()
	rw.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, lock := range map[string]func(context.Context) error{
		"Mutex.LockContext": m.LockContext, "RWMutex.LockContext": rw.LockContext, "RWMutex.RLockContext": rw.RLockContext,
	} {
		if err := lock(ctx); err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wg WaitGroup
	if err := wg.WaitContext(ctx); err != nil {
		t.Errorf("WaitContext of a counter of 0: %v", err)
	}
	if !m.TryLock() || !rw.TryLock() {
		t.Error("a call that failed holds the lock")
	}
}
