package parking

import "github.com/hqsync/hqsync/internal/race"

// Close ends all waits of the table, in whatever hash: Park returns Closed, Wait
// and WaitV ErrClosed, unless they have been chosen by a waker already. From then
// on every operation returns that at once, and Unpark functions find nobody.
// Close may be called again, and from anywhere but a callback. The default table
// cannot be closed: ErrInvalid.
//
// Waits without the flag Private end too if they were made through this table.
//
//go:norace
func (t *Table) Close() error {
	if t == &defaultTable {
		return ErrInvalid
	}
	race.Disable()
	t.resizing.Lock() // nothing migrates meanwhile
	t.name()
	t.closed.Store(1) // before any bucket is locked: who queues or requeues looks under its lock
	private, global := t.current.Load(), t.home().global.Load()
	if private != nil && private != global {
		t.evict(private)
	}
	if global != nil {
		t.evictGlobal(global)
	}
	t.resizing.Unlock()
	race.Enable()
	return nil
}

// evictBatch bounds the waiters that are woken in one pinned stretch.
const evictBatch = 64

// evict ends the waits of the table's waiters in h.
//
//go:norace
func (t *Table) evict(h *hash) {
	h.each(func(b *bucket) {
		for b.count.Load() != 0 && t.evictSome(b) {
		}
	})
}

// evictGlobal ends the waits of the table's waiters in the hash that all tables
// share. Another table, which is not closed, may move one of them from a bucket
// still to be visited to one that has been: then it begins again. The count of such
// moves rises before the count of the old bucket falls, so who finds nobody there
// finds it changed.
//
//go:norace
func (t *Table) evictGlobal(h *hash) {
	strays := t.home().straysOf(t.space.Load())
	for again := true; again; {
		before := strays.Load()
		t.evict(h)
		again = strays.Load() != before && !mutant("close: strays are left")
	}
}

// evictSome ends some waits of the table's waiters in b and reports whether
// there may be more.
//
//go:norace
func (t *Table) evictSome(b *bucket) (more bool) {
	var list, last *waiter
	n := 0
	owner := t.space.Load()
	pin()
	b.lock.LockPinned()
	for n < evictBatch {
		at, w := findOwned(&b.head, owner)
		if w == nil {
			break
		}
		dequeue(at, w) // W2
		last = appendTo(&list, last, w)
		n++
	}
	b.lower(n)
	b.lock.UnlockPinned()
	unpin()
	signalAll(list, closedToken, false, 1)
	return n == evictBatch
}

// findOwned returns a waiter of the table of this number, and the place of its
// queue, in the tree at *at.
//
//go:norace
func findOwned(at **waiter, owner uint32) (place **waiter, w *waiter) {
	q := *at
	if q == nil {
		return nil, nil
	}
	for w := q; w != nil; w = w.next {
		if w.owner == owner {
			return at, w
		}
	}
	if place, w = findOwned(&q.child[0], owner); w != nil {
		return place, w
	}
	return findOwned(&q.child[1], owner)
}
