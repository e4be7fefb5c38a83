package parking

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/race"
)

// UnparkRequeue moves waiters of one key to another without waking them, and
// wakes at most one.
//
// decide runs once, unless the table is closed, with both buckets locked and is told how many goroutines
// wait on from. By then they count as waiting on to, so decide may announce
// them in the word of to: an unlocker that sees the announcement finds a count
// that is not 0. callback, if not nil, runs after the move, still under the
// locks; its token is delivered to the goroutine that is woken, whose Result
// says More if others were moved or left. Both must not block, allocate, call this
// package or panic.
//
// Moved waiters queue behind those of to, in their order. If from and to are
// the same key nothing moves. The buckets stay locked, and the caller pinned, for
// a time in proportion to the number of those that are moved: in batches, others
// could park on to between them, and what decide has announced would not be true
// yet.
//
//go:norace
func (t *Table) UnparkRequeue(from, to Key, decide func(waiting int) RequeueOp, callback func(RequeueOp, UnparkResult) UnparkToken) UnparkResult {
	var op RequeueOp
	counts := func(waiting int) (wake, move int) {
		switch op = decide(waiting); op {
		case UnparkOneRequeueRest:
			return 1, waiting
		case RequeueAll:
			return 0, waiting
		case RequeueOne:
			return 0, 1
		}
		return 0, 0
	}
	var report func(UnparkResult) UnparkToken
	if callback != nil {
		report = func(r UnparkResult) UnparkToken { return callback(op, r) }
	}
	return t.requeue(from, to, counts, report)
}

// requeue wakes and moves as many as decide says, as far as there are any.
//
//go:norace
func (t *Table) requeue(from, to Key, decide func(waiting int) (wake, move int), callback func(UnparkResult) UnparkToken) UnparkResult {
	t.prepare()
	race.Disable()
	var r UnparkResult
	hFrom, hTo := t.root(from), t.root(to)
	pin()
	src, at, dst := t.lockPair(hFrom, hTo, from, to)

	waiting := 0
	if *at != nil {
		waiting = int((*at).length)
	}
	late := mutant("requeue: counted late")
	if !late {
		dst.raise(waiting) // before decide announces anybody
	}
	wake, move := 0, 0
	if t.closed.Load() == 0 {
		wake, move = decide(waiting)
	}
	r.Unparked = min(wake, waiting)
	if r.Unparked > 0 {
		r.tell(*at)
	}
	woken := take(at, r.Unparked) // W2
	if from != to {
		r.Requeued = min(move, waiting-r.Unparked)
		t.append(dst, to, take(at, r.Requeued)) // W3
	}
	r.More = waiting > r.Unparked+r.Requeued
	var token UnparkToken
	if callback != nil {
		token = callback(r)
	}
	if late {
		dst.raise(waiting)
	}
	src.unparks += uint64(r.Unparked)
	src.requeues += uint64(r.Requeued)
	src.lower(r.Unparked + r.Requeued)
	dst.lower(waiting - r.Requeued)
	releasePair(src, dst)
	unpin()
	signalAll(woken, token, r.Requeued > 0 || r.More, 1)
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

// append gives the waiters of list another key, and queues them on it, where
// their wait begins anew as far as UnparkResult tells. The place of its queue is looked for only now: taking waiters off another queue
// of the same bucket may have moved it.
//
//go:norace
func (t *Table) append(s spot, key Key, list *waiter) {
	if list == nil {
		return
	}
	at := s.find(key, t.spaceOf(key))
	now := nanotime()
	for w := list; w != nil; {
		next := w.next
		w.next = nil
		w.since, w.charged = now, now
		if !mutant("requeue: key stays") {
			w.setKey(key)
		}
		enqueue(at, w, false)
		if w.owner != t.space.Load() {
			t.home().straysOf(w.owner).Add(1) // for its Close
		}
		w = next
	}
}

// lockPair locks the buckets of two keys, which may be one. It blocks for one
// and only tries the other, and then the other way round: so there is no order
// to keep between buckets of different generations.
//
//go:norace
func (t *Table) lockPair(hFrom, hTo *hash, from, to Key) (src spot, at **waiter, dst spot) {
	var ok bool
	for {
		src, at = t.lock(hFrom, from)
		if dst, _, ok = t.tryLock(hTo, to, src); ok {
			return src, at, dst
		}
		src.release()

		dst, _ = t.lock(hTo, to)
		if src, at, ok = t.tryLock(hFrom, from, dst); ok {
			return src, at, dst
		}
		dst.release()
	}
}

// releasePair undoes lockPair.
//
//go:norace
func releasePair(src, dst spot) {
	if dst.bucket != src.bucket {
		dst.release()
	}
	src.release()
	runtime.KeepAlive(dst.hash)
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
		if at, ok := t.here(s, key); ok {
			if s.hash.mode == counted && !ours {
				s.refer(1)
			}
			return s, at, true
		}
		if !ours {
			s.lock.UnlockPinned()
		}
		h = h.next.Load()
	}
}
