package parking

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/race"
)

// UnparkOne wakes the goroutine that has been parked on key the longest, if any.
//
// callback, if not nil, runs once with key's bucket locked, whether or not a
// waiter was found; its token is delivered to the waiter. It must not block,
// allocate, call this package or panic. The race detector takes no edge from what
// it does. Without a callback, and with nobody there, UnparkOne costs one load.
//
//go:norace
func (t *Table) UnparkOne(key Key, callback func(UnparkResult) UnparkToken) UnparkResult {
	return t.UnparkOneFor(1, key, callback)
}

// UnparkOneFor is UnparkOne on behalf of a caller skip frames above: execution
// traces then show that one as who woke the goroutine.
//
//go:norace
func (t *Table) UnparkOneFor(skip int, key Key, callback func(UnparkResult) UnparkToken) UnparkResult {
	var r UnparkResult
	if callback == nil && !t.Waiting(key) {
		return r
	}
	t.prepare()
	race.Disable()
	h := t.root(key)
	pin()
	s, at := t.lock(h, key)
	w := *at
	if w != nil {
		prefetch(w)
		r.Unparked = 1
		r.More = w.next != nil
		r.tell(w)
		r.Delay = w.delay()
		dequeue(at, w) // W2
	}
	var token UnparkToken
	if callback != nil {
		token = callback(r)
	}
	s.unparks += uint64(r.Unparked)
	s.lower(r.Unparked)
	s.release()
	if w != nil {
		w.signal(token, r.More, skip+2)
		if mutant("unpark: signals twice") {
			w.signal(token, r.More, 0)
		}
	}
	unpin()
	race.Enable()
	return r
}

// Prefetch asks for key's bucket, for who is about to wake somebody: with very
// many of them it is in no cache.
//
//go:norace
func (t *Table) Prefetch(key Key) {
	if h := t.current.Load(); h != nil {
		prefetchBucket(h.spot(key).bucket)
		runtime.KeepAlive(h)
	}
}

// UnparkAll wakes every goroutine that is parked on key, in order. callback is
// as in UnparkOne; all get its token. Goroutines are made runnable after the
// bucket has been unlocked. It stays locked, and the caller pinned, for a time in
// proportion to their number: in batches, whoever parks between two of them would
// be woken by a call that came before his wait.
//
//go:norace
func (t *Table) UnparkAll(key Key, callback func(UnparkResult) UnparkToken) UnparkResult {
	return t.UnparkAllFor(1, key, callback)
}

// UnparkAllFor is to UnparkAll as UnparkOneFor is to UnparkOne.
//
//go:norace
func (t *Table) UnparkAllFor(skip int, key Key, callback func(UnparkResult) UnparkToken) UnparkResult {
	var r UnparkResult
	if callback == nil && !t.Waiting(key) {
		return r
	}
	t.prepare()
	race.Disable()
	h := t.root(key)
	pin()
	s, at := t.lock(h, key)
	list := takeAll(at) // W2
	if list != nil {
		r.Unparked = int(list.length)
		r.tell(list)
		r.Delay = list.delay()
	}
	var token UnparkToken
	if callback != nil {
		token = callback(r)
	}
	s.unparks += uint64(r.Unparked)
	s.lower(r.Unparked)
	s.release()
	unpin()
	signalAll(list, token, false, skip+1)
	race.Enable()
	return r
}

// UnparkInTurnFor is UnparkAllFor that wakes only the goroutine which has been
// parked on key the longest, takes the others off key all the same, and leaves
// their wake-up to it: each calls [Result.WakeNext] when it is the next one's turn.
// Deadlines and contexts do not end the waits of those who have not been woken yet.
//
//go:norace
func (t *Table) UnparkInTurnFor(skip int, key Key) (unparked int) {
	if !t.Waiting(key) {
		return 0
	}
	t.prepare()
	race.Disable()
	h := t.root(key)
	pin()
	s, at := t.lock(h, key)
	list := takeAll(at) // W2
	if list != nil {
		unparked = int(list.length)
	}
	s.unparks += uint64(unparked)
	s.lower(unparked)
	s.release()
	unpin()
	signalFirst(list, skip+1)
	race.Enable()
	return unparked
}

// WakeNext wakes the goroutine whose turn it is after that of the caller. It must
// be called once after each Park that might have been ended by UnparkInTurnFor, and
// does nothing after others. The caller is skip frames above, for execution traces.
//
//go:norace
func (r *Result) WakeNext(skip int) {
	if r.next == nil || mutant("unpark: turn is not passed on") {
		return
	}
	race.Disable()
	signalFirst(r.next, skip+1)
	race.Enable()
}

// signalFirst ends the wait of the first of a list that has been taken off its
// queue, and leaves the rest to it. Who waits in a group cannot take that on.
//
//go:norace
func signalFirst(list *waiter, skip int) {
	for w := list; w != nil; {
		next, grouped := w.next, w.group() != nil
		w.clear()
		if !grouped {
			w.next = next
		}
		w.signal(0, false, skip+2) // w is its owner's again
		if !grouped {
			return
		}
		w = next
	}
}

// UnparkFilter shows the waiters of key to filter, oldest first, and wakes those
// that it chooses. callback is as in UnparkOne and runs after the last verdict.
// Both must not block, allocate, call this package or panic.
//
//go:norace
func (t *Table) UnparkFilter(key Key, filter func(ParkToken) FilterOp, callback func(UnparkResult) UnparkToken) UnparkResult {
	var r UnparkResult
	t.prepare()
	race.Disable()
	h := t.root(key)
	pin()
	s, at := t.lock(h, key)
	var chosen, last *waiter
	for w := *at; w != nil; {
		next := w.next
		verdict := filter(ParkToken(w.token))
		if verdict == Stop {
			break
		}
		if verdict == Unpark {
			if r.Unparked == 0 {
				r.tell(w)
			}
			dequeue(at, w) // W2; *at stays the place of this key's queue, or of what follows it
			last = appendTo(&chosen, last, w)
			r.Unparked++
		}
		w = next
	}
	r.More = *at != nil && (*at).is(key, t.spaceOf(key))
	var token UnparkToken
	if callback != nil {
		token = callback(r)
	}
	s.unparks += uint64(r.Unparked)
	s.lower(r.Unparked)
	s.release()
	unpin()
	signalAll(chosen, token, r.More, 1)
	race.Enable()
	return r
}

// takeAll takes the queue at *at, if there is one, out of its tree and returns its
// waiters linked through next.
//
//go:norace
func takeAll(at **waiter) (list *waiter) {
	list = *at
	if list != nil {
		unlink(at)
	}
	for w := list; w != nil; w = w.next {
		w.queued = false
	}
	return list
}

// appendTo adds w, which is not queued, to a list through next.
//
//go:norace
func appendTo(list **waiter, last, w *waiter) *waiter {
	if last == nil {
		*list = w
	} else {
		last.next = w
	}
	return w
}

// signalAll ends the waits of a list that has been taken off its queue.
//
//go:norace
func signalAll(list *waiter, token UnparkToken, more bool, skip int) {
	for w := list; w != nil; {
		next := w.next
		if next != nil {
			prefetch(next)
		}
		w.clear()
		w.signal(token, more, skip+2) // w is its owner's again
		w = next
	}
}
