package parking

import "github.com/hqsync/hqsync/hq"

// A bucket is one slot of a hash: one cache line.
//
//	B1  A goroutine that is queued here, or is about to validate in order to be,
//	    is in count. (else: a waker that reads 0 loses a wake-up)
//	B2  A key has its queue in at most one bucket of a chain of hashes.
//	B3  mark goes live -> migrating -> moved, under lock, and only in a hash that
//	    is not fixed. It leaves live before the first waiter leaves for the
//	    successor, and count falls only after the successor's has risen.
type bucket struct {
	bucketFields
	_ [bucketSize - bucketUsed]byte
}

type bucketFields struct {
	lock  hq.Lock
	count atomicInt32  // raised before lock is taken; may be too high, never too low (B1)
	mark  atomicUint32 // live, migrating, moved
	head  *waiter      // first waiter of the first queue; guarded by lock; not seen by the garbage collector
}

// The values of mark.
const (
	live      = iota
	migrating // a key without a queue here belongs to the successor
	moved     // all keys belong to the successor
)

// find returns the place that points to key's queue, which is in the last
// place of the list, where it holds nil, if there is none.
//
//go:norace
func (b *bucket) find(key Key, space uint32) **waiter {
	at := &b.head
	for *at != nil && !(*at).is(key, space) {
		at = &(*at).nextQueue
	}
	return at
}

// enqueue adds w to the queue at *at, which is that of its key or nil.
//
//go:norace
func enqueue(at **waiter, w *waiter, front bool) {
	first := *at
	w.queued = true
	switch {
	case first == nil:
		w.next, w.prev, w.tail, w.nextQueue, w.length = nil, nil, w, nil, 1
		*at = w
	case front:
		w.next, w.prev, w.tail, w.nextQueue, w.length = first, nil, first.tail, first.nextQueue, first.length+1
		first.prev, first.tail, first.nextQueue = w, nil, nil
		*at = w
	default:
		last := first.tail
		w.next, w.prev = nil, last
		last.next, first.tail = w, w
		first.length++
	}
}

// dequeue takes w off the queue at *at.
//
//go:norace
func dequeue(at **waiter, w *waiter) {
	first := *at
	switch {
	case w != first:
		first.length--
		w.prev.next = w.next
		if w.next != nil {
			w.next.prev = w.prev
		} else {
			first.tail = w.prev
		}
	case w.next == nil:
		*at = w.nextQueue
	default:
		second := w.next
		second.prev, second.tail, second.nextQueue, second.length = nil, w.tail, w.nextQueue, w.length-1
		*at = second
	}
	w.next, w.prev, w.tail, w.nextQueue, w.length = nil, nil, nil, nil, 0
	w.queued = false
}

// spinTries bounds how long a goroutine that holds one bucket's lock tries to
// get a second one.
const spinTries = 200

// tryLock takes the lock of b without ever giving up the caller's pin.
//
//go:norace
func (b *bucket) tryLock() bool {
	for range spinTries {
		if b.lock.TryLockPinned() {
			return true
		}
		pause(1)
	}
	return false
}
