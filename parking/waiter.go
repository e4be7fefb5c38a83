package parking

import "github.com/hqsync/hqsync/internal/race"

// A waiter is the record of one parked goroutine. It is on the heap, because
// the stack of a parked goroutine may move, and comes from a cache. Its owner
// holds a reference for as long as it is queued, so that buckets need none
// that the garbage collector knows (see bucket_unsafe.go).
//
//	W1  idle -> queued       Park, under the bucket lock
//	W2  queued -> dequeued   an Unpark function or the owner itself (leave), under the bucket lock
//	W3  queued -> queued     requeue, migration: another key or bucket, under both bucket locks
//	W4  dequeued -> idle     the owner, after the waker's signal, or at once if it dequeued itself
//
// Every removal clears queued; removal is by identity.
type waiter struct {
	parker parker

	// Key. Written by the owner before W1 and under both bucket locks by W3; read
	// by the owner without them, which then locks and looks again.
	addr  atomicUintptr
	node  atomicUint32
	moves atomicUint32 // counts up twice per change of the key; odd during one

	// Written by the owner before W1.
	space uint32 // number of the Table, or sharedSpace: the global hash serves several
	owner uint32 // number of the Table
	rare  *rare  // nil if there is nothing in it

	// Guarded by the bucket lock while queued.
	// All links are clear while it is not queued, but next of one that wakes others in turn.
	next, prev *waiter    // neighbours in the queue; prev of the first is the last
	child      [2]*waiter // in the first waiter only: first waiters of other queues of the bucket
	charged    int64      // in the first waiter only: monotonic ns up to which UnparkResult.Delay has been told
	length     uint32     // in the first waiter only: number of waiters
	queued     bool

	more   bool // written by the waker before its signal
	edge   bool // Options.RaceEdge; this and the rest written by the owner before W1
	reason Reason
	since  int64   // monotonic ns at which the waiting began, or 0 if that is not known
	token  uintptr // the ParkToken; then the UnparkToken, written by the waker before its signal
}

// rare is what few waits have, apart to keep the records of all others small.
type rare struct {
	group *group // of the records that one goroutine waits with at the same time, or nil
	stack *trace // where it waits, or nil if the table does not record that
}

// magazineSize records of 112 bytes fill an allocation of 8 KiB.
const magazineSize = 73

// freePinned undoes pinWithRecord.
//
//go:norace
func (w *waiter) freePinned() {
	p := pin() // by now it may be another
	unpin()
	w.freeOn(p)
}

// freeOn gives w to P number p, to which the caller is pinned, and unpins it.
//
//go:norace
func (w *waiter) freeOn(p int) {
	w.rare = nil
	spilled := putRecord(p, w)
	unpin()
	spilled.deposit()
}

// free gives back a record that nobody else knows any more.
//
//go:norace
func (w *waiter) free() { w.freeOn(pin()) }

// fill makes w, which is about to be queued on key, say so. It starts the wait's
// clock and returns its ticket.
//
//go:norace
func (t *Table) fill(w *waiter, key Key, opts *Options) (ticket uint32) {
	w.addr.Store(key.Addr)
	w.node.Store(key.Node)
	w.space = t.spaceOf(key)
	w.owner = t.space.Load()
	w.token = uintptr(opts.Token)
	w.reason = opts.Reason
	w.edge = opts.RaceEdge
	w.more = false
	w.startClock(opts)
	if w.group() != nil {
		return 0 // sleeps on the group's Parker
	}
	return w.parker.Prepare()
}

// startClock notes when w begins to wait: it says 0 if that is not to be known.
//
//go:norace
func (w *waiter) startClock(opts *Options) {
	w.since, w.charged = 0, 0
	if opts.Untimed {
		return
	}
	w.charged = nanotime() // what it waited before has been told
	w.since = opts.Since
	if w.since == 0 {
		w.since = w.charged
	}
}

// tell says in r what w, which is the first to be woken, is like.
//
//go:norace
func (r *UnparkResult) tell(w *waiter) { r.Since, r.Token = w.since, ParkToken(w.token) }

// delay returns (d0 + d1)/2 * n, where n waiters are queued behind first, which
// included, and d0 and d1 are what first and the last have waited since the
// last call for this queue: what package sync charges in the mutex profile to
// the goroutine that wakes first.
//
//go:norace
func (first *waiter) delay() int64 {
	if first.since == 0 || !profiling() {
		return 0
	}
	now := nanotime()
	head := now - max(first.since, first.charged)
	tail := now - max(first.prev.since, first.charged)
	first.charged = now
	return (head + tail) / 2 * int64(first.length)
}

// signal ends the wait of w, which has been dequeued, and is the last that a
// waker does with it. skip is the number of frames above the caller that
// execution traces leave out. The caller has called race.Disable.
//
//go:norace
func (w *waiter) signal(token UnparkToken, more bool, skip int) {
	w.token, w.more = uintptr(token), more
	if race.Enabled && w.edge {
		race.Enable()
		race.Release(w.edgeAddr()) // the only waker of this wait
		race.Disable()
	}
	if g := w.group(); g != nil {
		g.signal(skip + 1)
		return
	}
	w.parker.Unpark(skip + 1)
}

//go:norace
func (w *waiter) group() *group {
	if w.rare == nil {
		return nil
	}
	return w.rare.group
}

// clear resets the links.
//
//go:norace
func (w *waiter) clear() {
	w.next, w.prev, w.child, w.length = nil, nil, [2]*waiter{}, 0
}

// key returns the key that w is, or was last, queued on, and the count of its
// moves. Without the bucket lock it may be out of date: it is current under the
// lock of its bucket if the count has not changed.
//
//go:norace
func (w *waiter) key() (k Key, moves uint32) {
	for {
		moves = w.moves.Load()
		k = Key{w.addr.Load(), w.node.Load()}
		if moves%2 == 0 && w.moves.Load() == moves {
			return k, moves
		}
		pause(1)
	}
}

// setKey is the part of W3 that changes the key.
//
//go:norace
func (w *waiter) setKey(k Key) {
	w.moves.Add(1)
	w.node.Store(k.Node)
	w.addr.Store(k.Addr)
	w.moves.Add(1)
}

//go:norace
func (w *waiter) is(key Key, space uint32) bool {
	return w.addr.Load() == key.Addr && w.node.Load() == key.Node && w.space == space
}
