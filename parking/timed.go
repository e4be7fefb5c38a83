package parking

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
)

// An alarm wakes a waiter for a deadline or a cancelled context. It only kicks:
// the waiter itself takes its record off the queue, under the bucket lock, so
// that a waker and an alarm can not both have ended the wait.
type alarm struct {
	parker  *parker
	ticket  uint32      // a kick for an earlier wait of the same record misses
	running atomicInt32 // callbacks that have not returned, and timers that have not been stopped
}

// ring runs on a goroutine of package time or context.
//
//go:norace
func (a *alarm) ring() {
	a.parker.Kick(a.ticket)
	a.running.Add(-1)
}

// parkTimed sleeps until a signal, or until w left its queue by itself. It
// relies on Park having called race.Disable exactly once, and its caller not.
//
//go:norace
func (t *Table) parkTimed(w *waiter, ticket uint32, timedOut func(Key, bool), opts *Options) Outcome {
	race.Enable() // packages time and context need their edges
	a := &alarm{parker: &w.parker, ticket: ticket}
	var timer *time.Timer
	if !opts.Deadline.IsZero() {
		a.running.Add(1)
		timer = time.AfterFunc(time.Until(opts.Deadline), a.ring)
	}
	var stop func() bool
	if opts.Context != nil && opts.Context.Done() != nil {
		a.running.Add(1)
		stop = context.AfterFunc(opts.Context, a.ring)
	}

	race.Disable()

	outcome := Unparked
	for w.parker.Park(opts.Reason, opts.Skip+2) == rt.Kicked {
		if t.leave(w, timedOut) {
			outcome = TimedOut
			if timer == nil || time.Now().Before(opts.Deadline) {
				outcome = Canceled
			}
			w.parker.Leave()
			break
		}
		w.parker.Rearm() // dequeued: the waker's signal is under way
	}

	// Nothing of this wait may outlive it.
	race.Enable()
	if timer != nil && timer.Stop() {
		a.running.Add(-1)
	}
	if stop != nil && stop() {
		a.running.Add(-1)
	}
	for a.running.Load() != 0 {
		yield()
	}
	race.Disable()
	return outcome
}
