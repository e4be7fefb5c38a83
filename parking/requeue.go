package parking

import "github.com/hqsync/hqsync/internal/race"

// UnparkRequeue moves waiters of one key to another without waking them, and
// wakes at most one.
//
// decide runs once with both buckets locked and is told how many goroutines
// wait on from. By then they count as waiting on to, so decide may announce
// them in the word of to: an unlocker that sees the announcement finds a count
// that is not 0. callback, if not nil, runs after the move, still under the
// locks; its token is delivered to the goroutine that is woken, whose Result
// says More if others were moved or left. Both must not block, allocate, call this
// package or panic.
//
// Moved waiters queue behind those of to, in their order. If from and to are
// the same key nothing moves.
//
//go:norace
func (t *Table) UnparkRequeue(from, to Key, decide func(waiting int) RequeueOp, callback func(RequeueOp, UnparkResult) UnparkToken) UnparkResult {
	race.Disable()
	var r UnparkResult
	h := t.first()
	pin()
	src, at, dst := t.lockPair(h, from, to)

	waiting := 0
	if *at != nil {
		waiting = int((*at).length)
	}
	dst.count.Add(int32(waiting)) // before decide announces anybody
	op := decide(waiting)
	var woken *waiter
	limit := 0
	switch {
	case op == UnparkOneRequeueRest && waiting > 0:
		woken = *at
		dequeue(at, woken) // W2
		r.Unparked = 1
		limit = waiting - 1
	case op == RequeueAll:
		limit = waiting
	case op == RequeueOne:
		limit = min(1, waiting)
	}
	if from != to {
		t.append(dst, to, take(at, limit)) // W3
		r.Requeued = limit
	}
	r.More = waiting > r.Unparked+r.Requeued
	var token UnparkToken
	if callback != nil {
		token = callback(op, r)
	}
	src.lock.UnlockPinned()
	if dst.bucket != src.bucket {
		dst.lock.UnlockPinned()
	}
	src.count.Add(-int32(r.Unparked + r.Requeued))
	dst.count.Add(-int32(waiting - r.Requeued))
	if woken != nil {
		woken.token, woken.more = uintptr(token), r.Requeued > 0 || r.More
		woken.parker.Unpark(1)
	}
	unpin()
	race.Enable()
	return r
}

// take takes the first n waiters off the queue at *at, which has that many, and
// returns them linked through next.
//
//go:norace
func take(at **waiter, n int) (list *waiter) {
	var last *waiter
	for range n {
		w := *at
		dequeue(at, w)
		last = appendTo(&list, last, w)
	}
	return list
}

// append gives the waiters of list another key, and queues them on it. The
// place of its queue is looked for only now: taking waiters off another queue
// of the same bucket may have moved it.
//
//go:norace
func (t *Table) append(s spot, key Key, list *waiter) {
	at := s.find(key, t.space.Load())
	for w := list; w != nil; {
		next := w.next
		w.next = nil
		w.setKey(key)
		enqueue(at, w, false)
		w = next
	}
}

// lockPair locks the buckets of two keys, which may be one. It blocks for one
// and only tries the other, and then the other way round: so there is no order
// to keep between buckets of different generations.
//
//go:norace
func (t *Table) lockPair(h *hash, from, to Key) (src spot, at **waiter, dst spot) {
	var ok bool
	for {
		src, at = t.lock(h, from)
		if dst, _, ok = t.tryLock(h, to, src); ok {
			return src, at, dst
		}
		src.lock.UnlockPinned()

		dst, _ = t.lock(h, to)
		if src, at, ok = t.tryLock(h, from, dst); ok {
			return src, at, dst
		}
		dst.lock.UnlockPinned()
	}
}

// tryLock is lock that does not wait long and knows that held is locked.
//
//go:norace
func (t *Table) tryLock(h *hash, key Key, held spot) (s spot, at **waiter, ok bool) {
	for {
		s = h.spot(key)
		ours := s.bucket == held.bucket
		if !ours && !s.tryLock() {
			return spot{}, nil, false
		}
		if at, ok := t.here(h, s, key); ok {
			return s, at, true
		}
		if !ours {
			s.lock.UnlockPinned()
		}
		h = h.next.Load()
	}
}
