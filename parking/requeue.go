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
// says More if others were moved. Both must not block, allocate, call this
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
	if op == UnparkOneRequeueRest && *at != nil {
		woken = *at
		dequeue(at, woken) // W2
		r.Unparked = 1
	}
	limit := 0
	switch op {
	case UnparkOneRequeueRest, RequeueAll:
		limit = waiting
	case RequeueOne:
		limit = 1
	}
	if from != to {
		r.Requeued = t.move(src, dst, from, to, limit)
	}
	r.More = waiting > r.Unparked+r.Requeued
	var token UnparkToken
	if callback != nil {
		token = callback(op, r)
	}
	src.lock.UnlockPinned()
	if dst != src {
		dst.lock.UnlockPinned()
	}
	src.count.Add(-int32(r.Unparked + r.Requeued))
	dst.count.Add(-int32(waiting - r.Requeued))
	if woken != nil {
		woken.token, woken.more = token, r.Requeued > 0
		woken.parker.Unpark(1)
	}
	unpin()
	race.Enable()
	return r
}

// move takes up to limit waiters off from's queue in src and appends them to
// to's in dst. Both buckets are locked and hold these keys.
//
//go:norace
func (t *Table) move(src, dst *bucket, from, to Key, limit int) (n int) {
	space := t.space.Load()
	for ; n < limit; n++ {
		// Found anew each time: in one bucket, the end of one queue's list is
		// the place of another's.
		at := src.find(from, space)
		w := *at
		if w == nil {
			break
		}
		dequeue(at, w)
		w.setKey(to)
		enqueue(dst.find(to, space), w, false) // W3
	}
	return n
}

// lockPair locks the buckets of two keys, which may be one. It blocks for one
// and only tries the other, and then the other way round: so there is no order
// to keep between buckets of different generations.
//
//go:norace
func (t *Table) lockPair(h *hash, from, to Key) (src *bucket, at **waiter, dst *bucket) {
	for {
		src, at = t.lock(h, from)
		if dst, _ = t.tryLock(h, to, src); dst != nil {
			return src, at, dst
		}
		src.lock.UnlockPinned()

		dst, _ = t.lock(h, to)
		if src, at = t.tryLock(h, from, dst); src != nil {
			return src, at, dst
		}
		dst.lock.UnlockPinned()
	}
}

// tryLock is lock that does not wait long and knows that held is locked.
//
//go:norace
func (t *Table) tryLock(h *hash, key Key, held *bucket) (b *bucket, at **waiter) {
	for {
		b = h.bucket(key)
		if b != held && !b.tryLock() {
			return nil, nil
		}
		if at, ok := t.here(h, b, key); ok {
			return b, at
		}
		if b != held {
			b.lock.UnlockPinned()
		}
		h = h.next.Load()
	}
}
