//go:build sim

package parking

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs of the model checker: CONTRIBUTING.md says how to read a trace. Each
// thread is a list of operations on one table, below; the methods of world are
// those operations. A lost wake-up is a deadlock, since for every wait that ends
// only by a wake-up there is one.

// A world is what the threads of a program share. Each schedule has one of its own.
type world struct {
	t      Table
	other  Table // for operations of all tables
	first  *hash // of t
	global *hash
	words  [4]atomicUint32
	keys   [4]Key           // of words; 0 and 2 share a bucket
	user   [numUsers]uint32 // words of futex operations
	moved  atomicUint32     // announcements of requeue
	ctx    *sim.Context

	log []string // what waits came to, in their order

	// Numbers of waits, as sleepers and as wakers see them: all must agree.
	woken, given int

	taken, offered [4]uint32 // of permits
}

const numUsers = 10

type operation func(w *world)

// program returns threads that carry out the operations of their lists. It counts
// on a table that has its buckets, unless fresh.
func program(name string, threads ...[]operation) sim.Program {
	return newProgram(name, false, threads)
}

func newProgram(name string, fresh bool, threads [][]operation) sim.Program {
	var w *world
	p := sim.Program{
		Name: name,
		Setup: func() {
			ResetForSim()
			w = &world{ctx: sim.NewContext()}
			for i := range w.keys { // in this order: see scatter
				w.keys[i] = Key{Addr: AddrOf(&w.words[i])}
				sim.ID(w.keys[i].Addr)
			}
			w.global = process.globalHash()
			sim.Name(w.global, "global")
			sim.Name(&w.words, "word")
			sim.Name(&w.user, "user")
			sim.Name(&w.moved, "moved")
			if fresh {
				sim.Name(&w.t, "t")
			} else {
				w.t.prepareForSim("t")
			}
			w.first = w.t.current.Load()
			tracked.begin()
		},
		Check:   func() error { return w.consistent() },
		Watch:   func(w sim.Write) error { return tracked.watch(w) },
		Final:   func() error { return w.atRest() },
		Outcome: func() string { return w.outcome() },
	}
	for _, ops := range threads {
		p.Threads = append(p.Threads, func() {
			for _, op := range ops {
				op(w)
			}
		})
	}
	return p
}

// consistent checks what holds after every step, in every generation: nobody is
// queued without being counted (B1), or after the record came back.
func (w *world) consistent() (err error) {
	if w.first == nil {
		w.first = w.t.current.Load()
	}
	look := func(b *bucket) {
		n, _ := size(b.head)
		if int(b.count.Load()) < n {
			err = fmt.Errorf("count is %d with %d waiters", b.count.Load(), n)
		}
		if e := tracked.look(b); e != nil {
			err = e
		}
	}
	for h := w.first; h != nil; h = h.next.Load() {
		h.each(look)
	}
	if w.t.current.Load() != w.global {
		w.global.each(look)
	}
	return err
}

// atRest checks that nobody is left behind, and that the books balance.
func (w *world) atRest() error {
	switch waiting, err := w.t.Audit(); {
	case err != nil:
		return err
	case waiting != 0 && w.t.closed.Load() == 0:
		return fmt.Errorf("%d waiters at rest", waiting)
	case w.woken != w.given:
		return fmt.Errorf("%d waits were ended by wakers, who count %d", w.woken, w.given)
	}
	for h := w.first; h != nil && h.next.Load() != nil; h = h.next.Load() {
		for i := range h.buckets {
			if b := &h.buckets[i]; b.count.Load() != 0 || b.mark.Load() != moved {
				return fmt.Errorf("an old bucket at rest: count %d, mark %d", b.count.Load(), b.mark.Load())
			}
		}
	}
	for i := range w.words {
		if left := w.words[i].Load(); w.offered[i]-w.taken[i] != left {
			return fmt.Errorf("%d permits offered, %d taken, %d left", w.offered[i], w.taken[i], left)
		}
	}
	return nil
}

// outcome tells final states apart: who took what, and what the table counted.
func (w *world) outcome() string {
	stats := w.t.Stats()
	return fmt.Sprint(w.log, w.woken, w.taken, stats.Parks, stats.Unparks, stats.Requeues, stats.Contended, stats.Slots)
}

// --- permits: word i holds those that nobody waited for

// get waits for a permit. Who gives one hands it to a waiter, under the bucket's
// lock, or leaves it in the word.
func get(i int) operation {
	return func(w *world) {
		if !w.getWith(i, &Options{}) {
			sim.Failf("a wait without a limit ended without a permit")
		}
	}
}

// getFor is get with a deadline that may pass at any point.
func getFor(i int) operation {
	return func(w *world) {
		w.getWith(i, &Options{Deadline: now().Add(time.Millisecond)})
	}
}

// getUnless is get with a context.
func getUnless(i int) operation {
	return func(w *world) { w.getWith(i, &Options{Context: w.ctx}) }
}

func cancel(w *world) { w.ctx.Cancel() }

func (w *world) getWith(i int, opts *Options) bool {
	r := w.t.Park(w.keys[i], func() bool {
		n := w.words[i].Load()
		if n > 0 {
			w.words[i].Store(n - 1)
		}
		return n == 0
	}, nil, nil, opts)
	w.log = append(w.log, fmt.Sprint(i, r.Outcome))
	switch r.Outcome {
	case Unparked:
		sim.Assert(r.Token == 7, "the token got lost")
		w.woken++
		w.taken[i]++
	case Invalid:
		w.taken[i]++
	case TimedOut:
		sim.Assert(!opts.Deadline.IsZero(), "timed out without a deadline")
		return false
	case Canceled:
		sim.Assert(opts.Context != nil, "cancelled without a context")
		return false
	case Closed:
		sim.Assert(w.t.closed.Load() != 0, "closed, but it is not")
	}
	return true
}

func give(i int) operation {
	return func(w *world) {
		w.offered[i]++
		r := w.t.UnparkOne(w.keys[i], func(r UnparkResult) UnparkToken {
			if r.Unparked == 0 {
				w.words[i].Add(1)
			}
			return 7
		})
		w.given += r.Unparked
	}
}

// --- the same without handing over: sleepers look at the word again, and wakers
// look at the bucket's count first

func wait(i int) operation {
	return func(w *world) {
		for {
			n := w.words[i].Load()
			switch {
			case n > 0 && w.words[i].CompareAndSwap(n, n-1):
				w.taken[i]++
				return
			case n > 0:
				continue
			}
			r := w.t.Park(w.keys[i], func() bool { return w.words[i].Load() == 0 }, nil, nil, &Options{})
			if r.Outcome == Unparked {
				w.woken++
			}
		}
	}
}

func post(i int) operation {
	return func(w *world) {
		w.offered[i]++
		w.words[i].Add(1)
		w.given += w.t.UnparkOne(w.keys[i], nil).Unparked
	}
}

// --- events: word i is set for good

const forGood = 1000

func await(i int) operation {
	return func(w *world) {
		for w.words[i].Load() == 0 {
			r := w.t.Park(w.keys[i], func() bool { return w.words[i].Load() == 0 }, nil, nil, &Options{Token: ParkToken(i)})
			if r.Outcome == Unparked {
				w.woken++
			}
			r.WakeNext(0)
		}
	}
}

func setInTurn(i int) operation {
	return func(w *world) {
		w.offered[i] = forGood
		w.words[i].Store(forGood)
		w.given += w.t.UnparkInTurnFor(0, w.keys[i])
	}
}

func set(i int) operation {
	return func(w *world) {
		w.offered[i] = forGood
		w.words[i].Store(forGood)
		w.given += w.t.UnparkAll(w.keys[i], nil).Unparked
	}
}

// filter sets word i and wakes those of key k that wait for it.
func filter(i, k int) operation {
	return func(w *world) {
		w.offered[i] = forGood
		w.words[i].Store(forGood)
		r := w.t.UnparkFilter(w.keys[k], func(p ParkToken) FilterOp {
			if p == ParkToken(i) {
				return Unpark
			}
			return Skip
		}, nil)
		w.given += r.Unparked
	}
}

// awaitAt waits at key k until word i is set.
func awaitAt(k, i int) operation {
	return func(w *world) {
		for w.words[i].Load() == 0 {
			r := w.t.Park(w.keys[k], func() bool { return w.words[i].Load() == 0 }, nil, nil, &Options{Token: ParkToken(i)})
			if r.Outcome == Unparked {
				w.woken++
			}
		}
	}
}

// --- the table's size

func slots(n uint64, flags uint32) operation {
	return func(w *world) {
		err := w.t.SetSlots(n, flags)
		if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrClosed) {
			sim.Failf("SetSlots(%d, %d): %v", n, flags, err)
		}
		if err == nil && (n == 0 || flags&Immutable != 0) {
			sim.Assert(w.t.Immutable(), "a final choice was not in force")
			sim.Assert(errors.Is(w.t.SetSlots(8, 0), ErrBusy), "a resize after a final choice")
		}
	}
}

// --- requeue

// move sets word i, for which goroutines wait at key k, and moves them to key
// to, where it wakes them.
func move(i, k, to int, how RequeueOp) operation {
	return func(w *world) {
		w.offered[i] = forGood
		w.words[i].Store(forGood)
		r := w.t.UnparkRequeue(w.keys[k], w.keys[to], func(int) RequeueOp { return how }, nil)
		w.given += r.Unparked
		for range r.Requeued {
			w.given += w.t.UnparkOne(w.keys[to], nil).Unparked
		}
		if r.More {
			w.given += w.t.UnparkAll(w.keys[k], nil).Unparked
		}
	}
}

// announce is move that leaves it to somebody else to wake them, who is told
// before they have moved.
func announce(i, k, to int) operation {
	return func(w *world) {
		w.offered[i] = forGood
		w.words[i].Store(forGood)
		w.t.UnparkRequeue(w.keys[k], w.keys[to], func(int) RequeueOp {
			w.moved.Add(1)
			return RequeueAll
		}, nil)
	}
}

// unparkMoved waits for the n-th announcement and wakes who has been moved to key k.
func unparkMoved(n uint32, k int) operation {
	return func(w *world) {
		for seen := uint32(0); seen < n; {
			seen = sim.WaitWhileEqual32(&w.moved, seen)
		}
		w.given += w.t.UnparkAll(w.keys[k], nil).Unparked
	}
}

// awaitFor is awaitAt with a deadline that may pass at any point.
func awaitFor(k, i int) operation {
	return func(w *world) {
		opts := Options{Token: ParkToken(i), Deadline: now().Add(time.Millisecond)}
		r := w.t.Park(w.keys[k], func() bool { return w.words[i].Load() == 0 }, nil, nil, &opts)
		if r.Outcome == Unparked {
			w.woken++
		}
	}
}

// --- the table's end

// until waits on key i until the table is closed.
func until(i int) operation {
	return func(w *world) {
		r := w.t.Park(w.keys[i], nil, nil, nil, &Options{})
		sim.Assert(r.Outcome == Closed, "a wait until Close ended before")
	}
}

// futexUntil waits on user word i until the table is closed.
func futexUntil(i int) operation {
	return func(w *world) {
		err := w.t.Wait(w.futex(i), 0, AllBits, 0, Limit{})
		sim.Assert(errors.Is(err, ErrClosed), "a wait until Close ended before")
	}
}

// stray moves who waits on user word i to word to, by way of another table.
func stray(i, to int) operation {
	return func(w *world) {
		_, _, err := w.other.Requeue(w.futex(i), w.futex(to), 0, 9, 0)
		sim.Assert(err == nil, "Requeue failed")
	}
}

func closeTable(w *world) {
	sim.Assert(w.t.Close() == nil, "Close failed")
	r := w.t.Park(w.keys[0], nil, nil, nil, &Options{})
	sim.Assert(r.Outcome == Closed, "Park after Close")
}

// --- futex operations

func (w *world) futex(i int) Word { return WordOf(&w.user[i]) }

// futexWait waits until user word i is not 0.
func futexWait(i int, flags Flags) operation {
	return func(w *world) {
		for loadWord(&w.user[i]) == 0 {
			switch err := w.t.Wait(w.futex(i), 0, AllBits, flags, Limit{}); {
			case err == nil:
				w.woken++
			case !errors.Is(err, ErrAgain):
				sim.Failf("%v", err)
			}
		}
	}
}

// futexWake sets user word i and wakes up to n.
func futexWake(i, n int, flags Flags) operation {
	return func(w *world) {
		sim.Of32(&w.user[i]).Store(1)
		woken, err := w.t.Wake(w.futex(i), n, AllBits, flags)
		sim.Assert(err == nil, "Wake failed")
		w.given += woken
	}
}

// futexRequeue sets user word i, wakes one, moves the others to word to, and
// wakes them there.
func futexRequeue(i, to int, flags Flags) operation {
	return func(w *world) {
		sim.Of32(&w.user[i]).Store(1)
		_, _, err := w.t.CmpRequeue(w.futex(i), w.futex(to), 0, 1, 1, flags)
		sim.Assert(errors.Is(err, ErrAgain), "CmpRequeue did not compare")
		woken, _, err := w.t.CmpRequeue(w.futex(i), w.futex(to), 1, 1, 9, flags)
		sim.Assert(err == nil, "CmpRequeue failed")
		w.given += woken
		woken, err = w.t.Wake(w.futex(to), 9, AllBits, flags)
		sim.Assert(err == nil, "Wake failed")
		w.given += woken
	}
}

// futexWakeOp sets user word j, and wakes who waits for i, which is set, and who waits for j.
func futexWakeOp(i, j int, flags Flags) operation {
	return func(w *world) {
		sim.Of32(&w.user[i]).Store(1)
		woken, err := w.t.WakeOp(w.futex(i), 9, w.futex(j), 9, Op{Kind: OpSet, Arg: 1, Compare: Equal, CmpArg: 0}, flags)
		sim.Assert(err == nil, "WakeOp failed")
		w.given += woken
	}
}

// waitAny waits for one of the user words to be set, as far as the first n.
func waitAny(from, n int, limit Limit) operation {
	return func(w *world) {
		if limit != (Limit{}) {
			limit = Within(time.Millisecond)
		}
		entries := make([]WaitEntry, n)
		for i := range entries {
			entries[i] = WaitEntry{Word: w.futex(from + i), Flags: Private}
		}
		index, used, err := w.t.waitV(entries, limit)
		switch {
		case err == nil:
			sim.Assert(used > 0 && loadWord(&w.user[from+index]) != 0, "woken for nothing")
			w.woken += used
		case errors.Is(err, ErrAgain):
			sim.Assert(loadWord(&w.user[from+index]) != 0, "refused for nothing")
		case !errors.Is(err, ErrTimedOut) || limit == Limit{}:
			sim.Failf("%v", err)
		}
	}
}

// --- the programs

type list = []operation

// Two threads: all schedules of up to two preemptions, and with time enough more.
func twoThreads() []sim.Program {
	return []sim.Program{
		program("park, unpark", list{get(0), get(0)}, list{give(0), give(0)}),
		program("park, unpark of a word", list{wait(0), wait(0)}, list{post(0), post(0)}),
		program("park, unpark both ways", list{wait(0), post(2)}, list{post(0), wait(2)}),
		program("timed park, unpark", list{getFor(0), getFor(0)}, list{give(0), give(0)}),
		program("park, unpark, cancel", list{getUnless(0), getUnless(0)}, list{give(0), cancel}),
		program("unpark all", list{await(0), await(2)}, list{set(0), set(2)}),
		program("unpark in turn", list{await(0), await(2)}, list{setInTurn(0), setInTurn(2)}),
		program("unpark filter", list{awaitAt(0, 1), awaitAt(0, 2)}, list{filter(2, 0), filter(1, 0)}),
		program("requeue", list{awaitAt(0, 1), awaitAt(0, 2)}, list{move(1, 0, 3, RequeueAll), move(2, 0, 2, UnparkOneRequeueRest)}),
		program("timed park, requeue", list{awaitFor(0, 1), awaitFor(0, 2)}, list{move(1, 0, 3, RequeueOne), move(2, 0, 2, RequeueAll)}),
		program("resize, park, unpark", list{get(0), slots(4, 0), get(2)}, list{give(0), slots(8, 0), give(2)}),
		program("resize, park, unpark of a word", list{wait(0), wait(2)}, list{slots(4, 0), post(0), slots(2, 0), post(2)}),
		program("resize, requeue", list{awaitAt(0, 1), awaitAt(0, 2)}, list{slots(4, 0), move(1, 0, 3, RequeueAll), move(2, 0, 2, RequeueAll)}),
		program("immutable, park, unpark", list{get(0), slots(4, Immutable), get(0)}, list{give(0), slots(8, 0), give(0)}),
		program("global, park, unpark of a word", list{wait(0), slots(0, 0), wait(0)}, list{post(0), slots(4, 0), post(0)}),
		program("close, park", list{getUnless(0), until(0)}, list{give(0), closeTable}),
		program("close, resize", list{until(0), slots(8, 0)}, list{slots(4, 0), closeTable}),
		newProgram("first use", true, []list{{get(0), wait(2)}, {give(0), post(2)}}),
		program("waitv", list{waitAny(0, 2, Limit{}), waitAny(2, 2, Limit{})}, list{futexWake(1, 9, Private), futexWake(0, 9, Private), futexWake(3, 9, Private)}),
		program("timed waitv", list{waitAny(0, 2, timed), waitAny(2, 2, timed)}, list{futexWake(1, 1, Private), futexWake(0, 1, Private)}),
		program("futex wait, wake", list{futexWait(0, 0), futexWait(1, Private)}, list{futexWake(0, 1, 0), futexWake(1, 1, Private)}),
		program("futex requeue", list{futexWait(0, Private), futexWait(1, 0)}, list{futexRequeue(0, 2, Private), futexRequeue(1, 2, 0)}),
		program("futex wake-op", list{futexWait(0, Private), futexWait(1, Private)}, list{futexWakeOp(0, 1, Private), futexWake(0, 1, Private)}),
	}
}

var timed = Limit{Deadline: time.Unix(1, 0)}

// Three and four threads; the first is small enough to be explored whole.
func moreThreads() []sim.Program {
	return []sim.Program{
		program("park, unpark", list{get(0), get(0)}, list{give(0), get(0)}, list{give(0), give(0)}),
		program("park, unpark of a word", list{wait(0), post(2)}, list{wait(0), wait(2)}, list{post(0), post(0)}),
		program("timed park, unpark, cancel", list{getFor(0), getUnless(0)}, list{getUnless(0), give(0)}, list{give(0), cancel, give(0)}),
		program("unpark in turn", list{await(0), await(2)}, list{await(0), await(2)}, list{setInTurn(0), setInTurn(2)}),
		program("two queues in a bucket", list{get(0), give(2)}, list{get(0), give(2)}, list{get(2), get(2)}, list{give(0), give(0)}),
		program("unpark all, filter", list{awaitAt(0, 1), awaitAt(0, 2)}, list{awaitAt(0, 2), awaitAt(0, 1)}, list{filter(2, 0), filter(1, 0)}),
		program("requeue, announced", list{awaitAt(0, 1), awaitAt(0, 2)}, list{announce(1, 0, 3), announce(2, 0, 2)}, list{unparkMoved(1, 3), unparkMoved(2, 2)}),
		program("requeue, timed", list{awaitAt(0, 1), awaitAt(0, 2)}, list{awaitFor(0, 1), awaitFor(0, 2)},
			list{move(1, 0, 3, UnparkOneRequeueRest), move(2, 0, 2, RequeueAll)}),
		program("resize, park, unpark", list{get(0), get(2)}, list{give(0), give(2)}, list{slots(4, 0), slots(2, 0)}),
		program("resize, park, unpark of a word", list{wait(0), wait(2)}, list{post(0), post(2)}, list{slots(4, 0), slots(8, 0)}),
		program("resize, waitv", list{waitAny(0, 6, Limit{}), getFor(0)}, list{slots(4, 0), slots(2, 0)}, list{futexWake(5, 9, Private), futexWake(3, 9, Private)}),
		program("resize, timed park, unpark", list{getFor(0), getFor(2)}, list{give(0), give(2)}, list{slots(4, 0), slots(2, 0)}),
		program("resize, requeue, announced", list{awaitAt(0, 1), slots(4, 0), awaitAt(0, 2)}, list{announce(1, 0, 3), announce(2, 0, 2)}, list{unparkMoved(1, 3), slots(8, 0), unparkMoved(2, 2)}),
		program("immutable, global, park, unpark", list{wait(0), slots(4, Immutable), wait(2)}, list{slots(0, 0), slots(8, 0)}, list{post(0), post(2)}),
		program("close, park, unpark", list{getUnless(0), until(2)}, list{until(1), slots(4, 0)}, list{give(0), closeTable}),
		program("close, requeue by another table", list{futexUntil(0)}, list{stray(0, 1), stray(1, 0)}, list{closeTable}),
		newProgram("first use", true, []list{{wait(0), wait(2)}, {post(0), slots(4, 0)}, {slots(8, 0), post(2)}}),
		program("growth", list{waitAny(0, numUsers, Limit{}), give(1)}, list{getFor(0), getFor(2), get(1)}, list{futexWake(7, 9, Private), futexWake(5, 9, Private)}),
		program("waitv", list{waitAny(0, 2, Limit{}), waitAny(2, 2, Limit{})}, list{waitAny(1, 2, timed), slots(4, 0)},
			list{futexWake(1, 9, Private), futexWake(2, 9, Private), futexWake(0, 9, Private)}),
		program("waitv, two wakers", list{waitAny(0, 2, Limit{}), waitAny(2, 2, Limit{})}, list{futexWake(0, 9, Private), futexWake(2, 9, Private)},
			list{futexWake(1, 9, Private), futexWake(3, 9, Private)}),
		program("futex", list{futexWait(0, 0), futexWait(1, Private)}, list{futexWait(0, 0), futexWait(1, Private)}, list{futexRequeue(0, 2, 0), futexWakeOp(1, 0, Private)}),
	}
}

func TestModelTable_TwoThreads(t *testing.T) {
	for _, p := range twoThreads() {
		bound := 3
		if testing.Short() || strings.Contains(p.Name, "timed") { // a time that may be over at any point multiplies schedules
			bound = 2
		}
		t.Run(p.Name, func(t *testing.T) {
			sim.Cover(t, p, sim.Options{Memory: sim.TSO, Strategy: sim.Exhaustive(bound)}, testing.Short())
		})
	}
}

func TestModelTable_MoreThreads(t *testing.T) {
	for i, p := range moreThreads() {
		o := sim.Options{Memory: sim.TSO}
		if i == 0 {
			o.Strategy = sim.Exhaustive(2)
		}
		t.Run(p.Name, func(t *testing.T) { sim.Cover(t, p, o, testing.Short()) })
	}
}

// Runs with the steps of hq.Lock in them, which is where the two packages meet.
func TestModelTable_RealLocks(t *testing.T) {
	SimRealLocks = true
	defer func() { SimRealLocks = false }()
	for _, i := range []int{0, 4, 6, 7} {
		p := moreThreads()[i]
		t.Run(p.Name, func(t *testing.T) { sim.Cover(t, p, sim.Options{Memory: sim.TSO}, testing.Short()) })
	}
}

// The reduction changes no outcome of shipped code, and no verdict on a seeded fault.
func TestModelTable_ReductionIsSound(t *testing.T) {
	for _, c := range []struct {
		program string
		bound   int
		mutant  string
	}{
		{"park, unpark", 2, ""},
		{"park, unpark of a word", 2, ""},
		{"park, unpark of a word", 2, "park: counted without a fence"},
		{"resize, park, unpark", 1, ""},
		{"resize, park, unpark", 1, "resize: mark not looked at"},
		{"waitv", 1, ""},
		{"first use", 1, "birth: not one at a time"},
	} {
		t.Run(c.program+"/"+c.mutant, func(t *testing.T) {
			sim.CompareReduction(t, programNamed(t, c.program, 2),
				sim.Options{Memory: sim.TSO, Strategy: sim.Exhaustive(c.bound), Mutant: c.mutant, Budget: 1 << 30})
		})
	}
}
