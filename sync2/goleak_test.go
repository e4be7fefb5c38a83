package sync2_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hqsync/hqsync/sync2"
)

// TestNothingIsLeftBehindAfterUse: neither waiting nor giving up leaves a goroutine.
func TestNothingIsLeftBehindAfterUse(t *testing.T) {
	others := goleak.IgnoreCurrent()
	used(ours)
	giveUpInEveryWay(t)
	if err := goleak.Find(others); err != nil {
		t.Error(err)
	}
}

// giveUpInEveryWay lets each form that can give up do so, by the clock and by its context.
func giveUpInEveryWay(t *testing.T) {
	var m sync2.Mutex
	var rw sync2.RWMutex
	var wg sync2.WaitGroup
	c := sync2.NewCond(&m)
	m.Lock()
	rw.Lock()
	wg.Add(1)
	const d = 2 * time.Millisecond
	if m.TryLockFor(d) || rw.TryLockFor(d) || rw.TryRLockFor(d) {
		t.Error("a timed form took what was held")
	}
	for name, wait := range map[string]func(context.Context) error{
		"Mutex.LockContext":     m.LockContext,
		"RWMutex.LockContext":   rw.LockContext,
		"RWMutex.RLockContext":  rw.RLockContext,
		"WaitGroup.WaitContext": wg.WaitContext,
		"Cond.WaitContext":      c.WaitContext,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		if err := wait(ctx); err != context.DeadlineExceeded {
			t.Errorf("%s: got error %v, want %v", name, err, context.DeadlineExceeded)
		}
		cancel()
	}
	m.Unlock()
	rw.Unlock()
	wg.Done()
}
