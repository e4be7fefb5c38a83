package parking

import (
	"context"
	"math"
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
	running atomicInt32 // callbacks that have not returned, and may yet be called

	timer func() bool // stops the timer; nil if there is no deadline
	undo  func() bool // nil if there is no context
}

// set arms the alarm. timeout is how long the wait may last.
func (a *alarm) set(timeout time.Duration, ctx context.Context) {
	if timeout < forever {
		a.running.Add(1)
		a.timer = afterFunc(timeout, a.ring)
	}
	if ctx != nil && ctx.Done() != nil {
		a.running.Add(1)
		a.undo = afterCancel(ctx, a.ring)
	}
}

// ring runs on a goroutine of package time or context.
//
//go:norace
func (a *alarm) ring() {
	race.Disable()
	a.parker.Kick(a.ticket)
	a.running.Add(-1)
	race.Enable()
}

// stop returns when ring does not run and will not.
func (a *alarm) stop() {
	if a.timer != nil && a.timer() {
		a.running.Add(-1)
	}
	if a.undo != nil && a.undo() {
		a.running.Add(-1)
	}
	for a.running.Load() != 0 && !mutant("alarm: stop does not wait") {
		yield()
	}
}

// arm makes an alarm for the wait of ticket, or returns nil if it is too late
// already. The methods of a context are its author's: should one of them panic, or
// end the goroutine, then abandon takes the caller's records, which nothing but its
// stack keeps alive, off their queues.
func arm(p *parker, ticket uint32, timeout time.Duration, ctx context.Context, abandon func()) *alarm {
	var a *alarm
	armed := false
	defer func() {
		if !armed {
			if a != nil && a.timer != nil {
				a.timer() // if it rings already, that is for a wait that is over
			}
			abandon()
		}
	}()
	if timeout > 0 && (ctx == nil || ctx.Err() == nil) {
		a = &alarm{parker: p, ticket: ticket}
		a.set(timeout, ctx)
	}
	armed = true
	return a
}

// awaitSignal sleeps until the signal that is under way, whatever the alarm does.
//
//go:norace
func awaitSignal(p *parker) {
	for p.Park(ReasonSemacquire, 0) == rt.Kicked {
		p.Rearm()
	}
}

// forever is a timeout that never passes.
const forever = time.Duration(math.MaxInt64)

// parkTimed sleeps until a signal, or until leave, which is called after the
// limit has passed, has taken the caller's record off its queue; abandon is for
// arm. It relies on its caller having called race.Disable exactly once, and nobody above:
// packages time and context need their edges. skip is the number of frames above
// the caller that execution traces leave out.
//
//go:norace
func parkTimed(p *parker, ticket uint32, leave func() bool, abandon func(), opts *Options, skip int) Outcome {
	race.Enable()
	begin, timeout := now(), forever
	if !opts.Deadline.IsZero() {
		timeout = opts.Deadline.Sub(begin)
	}
	a := arm(p, ticket, timeout, opts.Context, abandon)
	race.Disable()

	if a == nil { // too late already
		p.Kick(ticket)
	}
	left := false
	for !left && p.Park(opts.Reason, skip+1) == rt.Kicked {
		if left = leave(); left {
			p.Leave()
		} else if !mutant("timed: no re-arm") {
			p.Rearm() // dequeued: the waker's signal is under way
		}
	}

	race.Enable()
	if a != nil {
		a.stop() // nothing of this wait may outlive it
	}
	outcome := Unparked
	if left {
		outcome = Canceled
		// Measured from begin, not against the deadline, whose clock may have been set back.
		if timeout < forever && now().Sub(begin) >= timeout {
			outcome = TimedOut
		}
	}
	race.Disable()
	return outcome
}
