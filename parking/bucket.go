package parking

// A bucket is one slot of a hash: one cache line.
//
// Its queues form a digital search tree: below a queue, the next bit of their
// keys' hashes parts those that come to its left from those to its right. Any
// leaf below a queue may take its place, so nothing is ever rebalanced, and the
// bits being as good as random the tree is as deep as log2 of the number of
// queues and a little more, whatever addresses fall together.
//
//	B1  A goroutine that is queued here, or is about to validate in order to be,
//	    is in count. (else: a waker that reads 0 loses a wake-up)
//	B2  A key has its queue in at most one bucket of a chain of hashes.
//	B3  mark goes live -> migrating -> moved, under lock, and only in a hash that
//	    is not fixed. It leaves live before the first waiter leaves for the
//	    successor, and count falls only after the successor's has risen.
type bucket struct {
	_ [bucketSize - bucketUsed]byte // ahead, since none at the end would make room for a pointer behind it
	bucketFields
}

type bucketFields struct {
	lock  bucketLock
	count atomicUint32 // changed under lock, read without; may be too high, never too low (B1)
	mark  atomicUint32 // live, migrating, moved

	// Guarded by lock. The garbage collector sees neither pointer.
	head *waiter     // first waiter of the root's queue
	back *references // nil but in one design of ladder.go, which is there to be measured
	tally
}

// A tally counts what has happened in a bucket.
type tally struct {
	parks, unparks, requeues uint64
	contended                uint32 // times that the lock was not free
}

//go:norace
func (c *tally) add(d *tally) {
	c.parks += d.parks
	c.unparks += d.unparks
	c.requeues += d.requeues
	c.contended += d.contended
}

// The values of mark.
const (
	live      = iota
	migrating // a key without a queue here belongs to the successor
	moved     // all keys belong to the successor
)

// find returns the place that points to key's queue, or where it would go,
// which holds nil.
//
//go:norace
func (s spot) find(key Key, space uint32) **waiter {
	at := &s.head
	for *at != nil && !(*at).is(key, space) {
		at = &(*at).child[s.path>>63]
		s.path <<= 1
	}
	return at
}

// crowdLimit is the depth in a bucket's tree from which on a table of few buckets
// grows. Of very many trees the deepest is deeper by chance: hence the number of
// bits of the bucket's index. A table larger than it must be costs a waker the
// cache line of its bucket.
func crowdLimit(h *hash) int { return 3 + int(64-h.shift)/4 }

// crowded reports whether a queue that is not there yet would be crowdLimit deep.
//
//go:norace
func (s spot) crowded() bool {
	depth, limit := 0, crowdLimit(s.hash)
	for q := s.head; q != nil && depth < limit; q = q.child[s.path>>63] {
		s.path <<= 1
		depth++
	}
	return depth >= limit
}

// leaf returns the place of some leaf of the tree at *at, which is not empty.
//
//go:norace
func leaf(at **waiter) **waiter {
	for {
		switch c := &(*at).child; {
		case c[0] != nil:
			at = &c[0]
		case c[1] != nil:
			at = &c[1]
		default:
			return at
		}
	}
}

// unlink takes the queue at *at out of its tree.
//
//go:norace
func unlink(at **waiter) {
	q := *at
	from := leaf(at)
	heir := *from
	*from = nil
	if heir != q {
		heir.child = q.child
		q.child = [2]*waiter{}
		*at = heir
	}
}

// enqueue adds w, whose links are clear, to the queue at *at, which is that of
// its key or nil.
//
//go:norace
func enqueue(at **waiter, w *waiter, front bool) {
	first := *at
	w.queued = true
	switch {
	case first == nil:
		w.prev, w.length = w, 1
		*at = w
	case front:
		w.next, w.prev, w.child, w.length, w.charged = first, first.prev, first.child, first.length+1, first.charged
		first.prev, first.child, first.length = w, [2]*waiter{}, 0
		*at = w
	default:
		last := first.prev
		w.prev = last
		last.next, first.prev = w, w
		first.length++
	}
}

// dequeue takes w off the queue at *at. The place is then that of the rest of
// the queue, or of another queue or nothing if there is no rest.
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
			first.prev = w.prev
		}
	case w.next == nil:
		unlink(at)
	default:
		second := w.next
		second.prev, second.child, second.length, second.charged = w.prev, w.child, w.length-1, w.charged
		if mutant("dequeue: other queues get lost") {
			second.child = [2]*waiter{}
		}
		*at = second
	}
	w.clear()
	w.queued = false
}

// tryLock takes the lock of b without ever giving up the caller's pin. spinTries
// bounds how long a goroutine that holds one bucket's lock tries to get a second.
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
