package parking

import (
	"github.com/hqsync/hqsync/hq"
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
// opts must not be nil; it is a pointer because a sleeping goroutine's stack is
// what a wait costs most of, and is kept to 2 KiB. Park does not keep it.
//
//go:norace
func (t *Table) Park(key Key, validate func() bool, beforeSleep func(), timedOut func(key Key, last bool), opts *Options) Result {
	t.prepare()
	race.Disable()
	if t.crowded.Load() == tooSmall {
		t.grow()
	}
	h := t.root(key)
	hq.Locate() // for the bucket's lock, which may not ask the system
	w := pinWithRecord()
	if t.stacks.Load() != 0 {
		w.recordStack(opts.Skip)
	}
	ticket, refused := t.queue(h, key, w, validate, opts)
	if refused != queuedUp {
		w.freePinned()
		race.Enable()
		return Result{Ending: Ending{Outcome: refused}}
	}
	unpin()
	if beforeSleep != nil {
		t.callBeforeSleep(w, beforeSleep)
	}
	outcome := Unparked
	if opts.Context == nil && opts.Deadline.IsZero() {
		w.parker.Park(opts.Reason, opts.Skip+1)
	} else {
		outcome = t.parkWithin(w, ticket, timedOut, opts)
	}
	return w.finish(outcome, opts)
}

// parkWithin sleeps until a signal or the limit in opts. It and finish are apart
// from Park to keep their variables out of its frame, which a sleeping goroutine's
// stack has room for: see TestPark_StackFitsIntoTheFirst.
//
//go:noinline
//go:norace
func (t *Table) parkWithin(w *waiter, ticket uint32, timedOut func(key Key, last bool), opts *Options) Outcome {
	leave := func() bool { return t.leave(w, timedOut) }
	abandon := func() { t.abandon(w) }
	return parkTimed(&w.parker, ticket, leave, abandon, opts, opts.Skip+2)
}

// finish gives w back after the wait has ended (W4) and says how.
//
//go:noinline
//go:norace
func (w *waiter) finish(outcome Outcome, opts *Options) Result {
	r := Result{Ending: Ending{Outcome: outcome}, Since: w.since, next: w.next}
	w.next = nil
	if outcome == Unparked {
		r.Token, r.More = UnparkToken(w.token), w.more
		if r.Token == closedToken {
			r = Result{Ending: Ending{Outcome: Closed}}
		}
	}
	race.Enable()
	if race.Enabled && opts.RaceEdge && r.Outcome == Unparked {
		race.Acquire(w.edgeAddr())
	}
	w.free()
	return r
}

// queuedUp is the outcome that a wait has until something else ends it.
const queuedUp = Unparked

// queue queues w on key (W1) and returns the ticket of its wait, unless the table
// is closed or validate disagrees: then it returns Closed or Invalid. The caller
// is pinned. Until w is queued nobody looks at it, so it is filled in only then:
// to be refused is cheap.
//
//go:norace
func (t *Table) queue(h *hash, key Key, w *waiter, validate func() bool, opts *Options) (ticket uint32, refused Outcome) {
	s, at := t.lock(h, key)
	if !mutant("park: counted after validate") {
		s.raise(1) // B1
	}
	switch {
	case t.closed.Load() != 0 && !mutant("close: park does not look"):
		refused = Closed
	case mutant("park: not validated"):
	case validate != nil && !validate():
		refused = Invalid // also if the table is closed by now: validate may have had an effect
	}
	if mutant("park: counted after validate") {
		s.raise(1)
	}
	if refused != queuedUp {
		s.lower(1)
		s.release()
		return 0, refused
	}
	if *at == nil && s.hash.mode != fixed && s.crowded() && t.crowded.Load() == roomy {
		t.crowded.Store(tooSmall)
	}
	ticket = t.fill(w, key, opts)
	enqueue(at, w, opts.Front)
	s.parks++
	s.release()
	return ticket, queuedUp
}

// callBeforeSleep runs f. If f does not return, because it panics or ends the
// goroutine, w must not stay behind.
//
//go:norace
func (t *Table) callBeforeSleep(w *waiter, f func()) {
	returned := false
	defer func() {
		if !returned {
			t.abandon(w)
		}
	}()
	race.Enable()
	f()
	race.Disable()
	returned = true
}

// abandon ends the wait of w, whose owner's stack is what keeps it alive and is
// about to go: user code that it has called does not return.
//
//go:norace
func (t *Table) abandon(w *waiter) {
	race.Disable()
	if t.leave(w, nil) {
		w.parker.Leave()
	} else {
		awaitSignal(&w.parker)
		signalFirst(w.next, 0)
		w.next = nil
	}
	w.free()
	race.Enable()
}

// leave takes w off its queue, wherever it is by now, unless a waker was faster.
//
//go:norace
func (t *Table) leave(w *waiter, timedOut func(key Key, last bool)) (left bool) {
	for {
		key, moves := w.key()
		h := t.root(key)
		pin()
		s, at := t.lock(h, key)
		current := w.moves.Load() == moves || mutant("leave: moves not compared") // not requeued meanwhile
		if left = current && w.queued; left && !mutant("leave: stays queued") {
			dequeue(at, w) // W2; its queue is at *at (B2), and nobody can move it now
			if timedOut != nil {
				timedOut(key.public(), *at == nil || !(*at).is(key, w.space))
			}
		}
		if left {
			s.lower(1)
		}
		s.release()
		unpin()
		if current {
			return left
		}
	}
}
