package parking

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/race"
)

// WaitV: one goroutine, a record in the queue of each word.
//
// # Handshake
//
// Every record that a waker dequeues is a wake-up that its waker was told about,
// so each of these wakers signals, and the records may be reused only when all of
// them have. But the goroutine sleeps on one Parker, which takes one signal:
//
//	V1  signals 0 -> 1          the first waker; it ends the sleep
//	V2  signals n -> n+1        further wakers; that is the last they do
//	V3  signals n -> n-d        the owner, awake and no longer in any queue: d wakers have dequeued it, n of them have signalled
//	V4  signals -1 -> 0         the last waker, if the owner had to wait for it; it ends the second sleep
//
// In V3 n >= 1, since d >= 1 implies that V1 has been or will be, and the owner
// waits for it before. So no count is 1 in the second phase, nor 0 in the first.
type group struct {
	parker  parker
	signals atomicInt32
	rare    rare     // of all its records
	records []member // one for each word; owned by the sleeping goroutine
}

type member struct {
	*waiter
	left bool // it took itself off its queue
}

// signal says that a record of the group has been dequeued.
//
//go:norace
func (g *group) signal(skip int) {
	if n := g.signals.Add(1); n == 1 || n == 0 { // V1, V4
		g.parker.Unpark(skip + 1)
	}
}

// A WaitEntry is one of the words that WaitV waits on.
type WaitEntry struct {
	Word  Word
	Val   uint32
	Flags Flags
}

// WaitV sleeps until it is woken on one of up to MaxWaitV words, if all of them
// still have their values. It returns the lowest index of an entry that was
// woken. If one is woken on several at the same time, each of these wake-ups is
// used up; so it is with a word that is listed twice.
//
// All entries are checked, and all nodes chosen, before the first is queued.
// Errors are as in Wait, and ErrInvalid for no entry or too many; index is then
// that of the entry which it is about, or -1. If a word has not its value but one
// before it in the list was woken meanwhile, that is what is returned. An entry
// that is requeued keeps its index.
func (t *Table) WaitV(entries []WaitEntry, limit Limit) (index int, err error) {
	index, _, err = t.waitV(entries, limit)
	return index, err
}

// waitV also returns the number of wake-ups that were used up.
func (t *Table) waitV(entries []WaitEntry, limit Limit) (index, used int, err error) {
	if len(entries) == 0 || len(entries) > MaxWaitV || limit.invalid {
		return -1, 0, ErrInvalid
	}
	for i := range entries {
		if entries[i].Flags&^allFlags != 0 {
			return i, 0, ErrInvalid
		}
	}
	var keys [MaxWaitV]Key
	for i := range entries {
		if keys[i], err = t.place(entries[i].Word, entries[i].Flags); err != nil {
			return i, 0, err
		}
	}
	index, used, err = t.waitAny(entries, keys[:len(entries)], &Options{
		Token: ParkToken(AllBits), Deadline: limit.Deadline, Context: limit.Context, Skip: 2, RaceEdge: true,
	})
	runtime.KeepAlive(entries)
	return index, used, err
}

//go:norace
func (t *Table) waitAny(entries []WaitEntry, keys []Key, opts *Options) (index, used int, err error) {
	t.prepare()
	race.Disable()
	g := getGroup()
	ticket := g.parker.Prepare()
	mismatch, refused := t.queueAll(g, entries, keys, opts)

	outcome := Unparked
	leave := func() bool { return g.leaveAll(t) == 0 }
	switch {
	case mismatch >= 0 && leave():
		g.parker.Leave()
		outcome = refused
	case mismatch >= 0, opts.Context == nil && opts.Deadline.IsZero():
		g.parker.Park(opts.Reason, opts.Skip+1)
	default:
		abandon := func() { g.abandon(t) }
		outcome = parkTimed(&g.parker, ticket, leave, abandon, opts, opts.Skip+1)
	}
	index = mismatch
	if outcome == Unparked {
		if index, used = g.drain(t); used == 0 {
			outcome = Closed
		}
	}
	race.Enable()
	if race.Enabled && outcome == Unparked {
		g.acquireEdges()
	}
	g.free()
	return index, used, waitErrors[outcome]
}

// queueAll queues a record on each key. At the first word that has not its value
// it stops and returns the index, and why queue refused; else -1.
//
//go:norace
func (t *Table) queueAll(g *group, entries []WaitEntry, keys []Key, opts *Options) (mismatch int, refused Outcome) {
	g.rare.group = g
	if t.stacks.Load() != 0 {
		g.rare.stack = newTrace(opts.Skip)
	}
	for i := range entries {
		e := &entries[i]
		h := t.root(keys[i])
		w := pinWithRecord()
		w.rare = &g.rare
		_, refused = t.queue(h, keys[i], w, func() bool { return loadWord(e.Word.val) == e.Val }, opts)
		unpin()
		if refused != queuedUp {
			w.free()
			return i, refused
		}
		g.records = append(g.records, member{waiter: w})
	}
	return -1, queuedUp
}

// leaveAll takes the records off their queues and returns how many wakers were
// faster.
//
//go:norace
func (g *group) leaveAll(t *Table) (dequeued int) {
	for i := range g.records {
		r := &g.records[i]
		if !r.left && !mutant("waitv: others stay queued") {
			r.left = t.leave(r.waiter, nil)
		}
		if !r.left {
			dequeued++
		}
	}
	return dequeued
}

// abandon ends the wait, as Table.abandon does.
//
//go:norace
func (g *group) abandon(t *Table) {
	race.Disable()
	if g.leaveAll(t) == 0 {
		g.parker.Leave()
	} else {
		awaitSignal(&g.parker)
		g.drain(t)
	}
	g.free()
	race.Enable()
}

// drain runs after V1. It returns when all wakers are through, with the lowest
// index that was woken, and how many were. None was if the table was closed.
//
//go:norace
func (g *group) drain(t *Table) (index, used int) {
	dequeued := g.leaveAll(t)
	g.parker.Prepare()
	if g.signals.Add(-int32(dequeued)) == 0 || mutant("waitv: late wakers not awaited") { // V3
		g.parker.Leave()
	} else {
		g.parker.Park(ReasonSemacquire, 0)
	}
	index = -1
	for i, w := range g.records {
		if w.left || UnparkToken(w.token) == closedToken {
			continue
		}
		used++
		if index < 0 {
			index = i
		}
	}
	return index, used
}

// acquireEdges draws the edges from those who woke.
//
//go:norace
func (g *group) acquireEdges() {
	for _, w := range g.records {
		if !w.left {
			race.Acquire(w.edgeAddr())
		}
	}
}

// free gives the records back.
//
//go:norace
func (g *group) free() {
	for i := range g.records {
		g.records[i].waiter.free()
		g.records[i] = member{}
	}
	g.records = g.records[:0]
	g.signals.Store(0)
	g.rare = rare{}
	putGroup(g)
}
