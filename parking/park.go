package parking

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/race"
)

// Park puts the calling goroutine to sleep on key, if validate still agrees,
// until an Unpark function wakes it, the deadline passes or the context is
// cancelled. It never returns Unparked without having been chosen by an Unpark
// function. Waking beats the deadline, and the deadline beats cancellation.
// With a deadline that has passed or a context that has ended validate still
// runs, and the goroutine is queued for a moment.
//
// validate runs with key's bucket locked and returns whether to sleep; nil
// means yes. beforeSleep, if not nil, runs after the goroutine has been queued,
// with nothing locked and nothing pinned: it may block and unpark. timedOut, if
// not nil, runs with the bucket locked after the goroutine has taken itself off
// the queue because of the deadline or the context; last says that nobody else
// waits on that key, which is not the one parked on if a requeue came between.
// validate and timedOut must not block, allocate, call this package or panic.
//
// An Unpark function synchronizes before the return of the Park that it ends.
// The race detector is not told, and sees no edge: whoever builds a lock states
// those which that lock has. Park does not allocate in the steady state, but for
// a deadline or a context that has not ended yet.
//
//go:norace
func (t *Table) Park(key Key, validate func() bool, beforeSleep func(), timedOut func(key Key, last bool), opts Options) Result {
	race.Disable()
	if t.crowded.Load() != 0 {
		t.grow()
	}
	h := t.first()
	w, ticket := t.newWaiter(key, &opts)

	pin()
	b, at := t.lockToPark(h, key)
	if validate != nil && !validate() {
		b.lock.UnlockPinned()
		b.count.Add(-1)
		unpin()
		w.parker.Leave()
		w.free()
		race.Enable()
		return Result{Outcome: Invalid}
	}
	crowded := *at == nil && b.crowded()
	enqueue(at, w, opts.Front) // W1
	b.lock.UnlockPinned()
	unpin()
	if crowded {
		t.crowded.Store(1)
	}

	if beforeSleep != nil {
		t.callBeforeSleep(w, beforeSleep)
	}
	r := Result{Outcome: Unparked, Since: w.since}
	if opts.Context == nil && opts.Deadline.IsZero() {
		w.parker.Park(opts.Reason, opts.Skip+1)
	} else {
		r.Outcome = t.parkTimed(w, ticket, timedOut, &opts)
	}
	if r.Outcome == Unparked {
		r.Token, r.More = UnparkToken(w.token), w.more
	}
	runtime.KeepAlive(w)
	w.free() // W4
	race.Enable()
	return r
}

// callBeforeSleep runs f. If f does not return, because it panics or ends the
// goroutine, w must not stay behind: its owner's stack is what keeps it alive.
//
//go:norace
func (t *Table) callBeforeSleep(w *waiter, f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		race.Disable()
		if t.leave(w, nil) {
			w.parker.Leave()
		} else {
			w.parker.Park(ReasonSemacquire, 0) // the signal is under way
		}
		w.free()
		race.Enable()
	}()
	race.Enable()
	f()
	race.Disable()
	returned = true
}

// leave takes w off its queue, wherever it is by now, unless a waker was faster.
//
//go:norace
func (t *Table) leave(w *waiter, timedOut func(key Key, last bool)) (left bool) {
	h := t.first()
	pin()
	for {
		key, moves := w.key()
		b, at := t.lock(h, key)
		if w.moves.Load() != moves { // requeued meanwhile
			b.lock.UnlockPinned()
			continue
		}
		if left = w.queued; left { // its queue is at *at (B2), and nobody can move it now
			dequeue(at, w) // W2
			if timedOut != nil {
				timedOut(key, *at == nil || !(*at).is(key, w.space))
			}
		}
		b.lock.UnlockPinned()
		if left {
			b.count.Add(-1)
		}
		unpin()
		return left
	}
}
