//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/rt"
)

// checkQuiet checks what must hold when nobody uses l: the word is 0 and every
// node has come back to its P.
func checkQuiet(t *testing.T, l *Lock) {
	t.Helper()
	if w := l.word.Load(); w&modeMask == modeQ && w&^uint32(parked|qOnly) != 0 {
		t.Errorf("word %#x at rest", w)
	} else if w&modeMask != modeQ && (w&^uint32(parked|refMask) != modeHQ || !quiet(w>>refShift)) {
		t.Errorf("word %#x at rest, queues empty: %t", w, quiet(w>>refShift))
	}
	for i := range nodes {
		if s := nodes[i].state.Load(); s != free {
			t.Errorf("node %d is in state %d at rest", i+1, s)
		}
	}
	for i := range slots {
		if slots[i].top.Load() != nil {
			t.Errorf("sleepers are left in slot %d", i)
		}
	}
}

func TestSizes(t *testing.T) {
	if s := unsafe.Sizeof(Lock{}); s != 4 {
		t.Errorf("a Lock takes %d bytes, not 4", s)
	}
	if s := unsafe.Sizeof(qnode{}); s != 128 {
		t.Errorf("a node takes %d bytes, not two cache lines", s)
	}
	if s := unsafe.Sizeof(roster{}); s != 128 {
		t.Errorf("a roster takes %d bytes, not two cache lines", s)
	}
	if s := unsafe.Sizeof(cohort{}); s != 128 {
		t.Errorf("a cohort takes %d bytes, not two cache lines", s)
	}
	if s := unsafe.Sizeof(tally{}); s != 128 {
		t.Errorf("a tally takes %d bytes, not two cache lines", s)
	}
	if s := unsafe.Sizeof(sleepSlot{}); s != 64 {
		t.Errorf("a sleep slot takes %d bytes, not a cache line", s)
	}
}

// waitOf returns a wait of the pinned caller with a node of its own.
func waitOf(t *testing.T, l *Lock, domain uint32) *wait {
	t.Helper()
	w := &wait{lock: l, tuned: tuned(), domain: domain, watch: start(tuned().budget), node: claim(nanotime())}
	if w.node == 0 {
		t.Fatal("no node left")
	}
	w.tally = tallyOf(w.node)
	return w
}

func checkState(t *testing.T, id string, ref, want uint32) {
	t.Helper()
	if s := node(ref).state.Load(); s != want {
		t.Errorf("%s: node %d is in state %d, want %d", id, ref, s, want)
	}
}

func checkWord(t *testing.T, id string, l *Lock, want uint32) {
	t.Helper()
	if w := l.word.Load(); w != want {
		t.Errorf("%s: word %#x, want %#x", id, w, want)
	}
}

func TestTransitionsOfModeQ(t *testing.T) {
	now := nanotime()
	pin()
	defer unpin()

	l := new(Lock)
	l.LockPinned()
	checkWord(t, "T1", l, locked)
	if l.spinBeside(pending, lonePatience) {
		t.Error("T5: took a held lock")
	}
	l.word.Or(pending)
	if l.spinBeside(pending, lonePatience) {
		t.Error("T5: took a held lock")
	}
	checkWord(t, "T5", l, locked)

	// A head that waits in vain sets nosteal, leaves, and takes it along.
	if l.spinQueued(now) {
		t.Error("T9: took a held lock")
	}
	checkWord(t, "T6, T10, T11, T9", l, locked)

	// Two in the queue: the first leaves, the second is the head.
	a, b := waitOf(t, l, 0), waitOf(t, l, 0)
	a.enqueue()
	b.enqueue()
	checkState(t, "N2", a.node, head)
	checkState(t, "N1", b.node, waiting)
	a.leave()
	checkState(t, "N4", a.node, free)
	checkState(t, "N2", b.node, head)

	// The head takes the free word and the queue is empty.
	l.UnlockPinned()
	checkWord(t, "T2", l, b.node<<refShift)
	b.starved = true
	if !b.compete() {
		t.Error("T7: the head did not take a free word")
	}
	checkWord(t, "T7, T11", l, locked)

	// An abandoned node between head and tail is unlinked.
	a, b, c := waitOf(t, l, 0), waitOf(t, l, 0), waitOf(t, l, 0)
	a.enqueue()
	b.enqueue()
	c.enqueue()
	node(b.node).state.Store(abandoned)
	l.UnlockPinned()
	if !a.compete() {
		t.Error("T8: the head did not take a free word")
	}
	checkState(t, "N5", b.node, free)
	checkState(t, "N2", c.node, head)
	c.leave()

	// A waiter that has not looked at the clock for long is skipped.
	a, b, c = waitOf(t, l, 0), waitOf(t, l, 0), waitOf(t, l, 0)
	a.enqueue()
	b.enqueue()
	c.enqueue()
	node(b.node).beat.Store(beatOf(a.now - 200_000))
	a.leave()
	checkState(t, "N8, N9", b.node, out)
	checkState(t, "N2", c.node, head)
	if end := b.await(b.node); end != passedBy {
		t.Errorf("N11: a skipped wait ended with %d", end)
	}
	checkState(t, "N11", b.node, free)
	c.leave()

	// Only so many are skipped in a row.
	a = waitOf(t, l, 0)
	a.enqueue()
	var queue [maxSkips + 1]*wait
	for i := range queue {
		queue[i] = waitOf(t, l, 0)
		queue[i].enqueue()
		node(queue[i].node).beat.Store(beatOf(a.now - 200_000))
	}
	a.leave()
	for _, w := range queue[:maxSkips] {
		checkState(t, "N9", w.node, out)
		drop(w.node)
	}
	checkState(t, "N2", queue[maxSkips].node, head)
	queue[maxSkips].leave()

	// A successor that has taken the tail but not linked itself yet becomes the
	// head by itself.
	a, b = waitOf(t, l, 0), waitOf(t, l, 0)
	a.enqueue()
	l.word.Store(l.word.Load()&^refMask | b.node<<refShift) // T6, and then a pause
	b.up = b.node
	a.leave() // N6
	if s := node(a.node).next.Load(); s != left {
		t.Errorf("N6: next is %#x", s)
	}
	follow(a.node, b.node) // the rest of T6
	checkState(t, "N7", a.node, free)
	checkState(t, "N2", b.node, head)
	b.leave()

	// An abandoned tail empties the queue.
	a, b = waitOf(t, l, 0), waitOf(t, l, 0)
	a.enqueue()
	b.enqueue()
	node(b.node).state.Store(abandoned)
	a.leave()
	checkWord(t, "T9", l, locked)
	l.UnlockPinned()
	checkWord(t, "T2", l, 0)
	checkQuiet(t, l)
}

// When a P has no node left its waiters still get the lock.
func TestNoNodeLeft_StillLocks(t *testing.T) {
	l := new(Lock)
	pin()
	refs := make([]uint32, nodesPerP)
	for i := range refs {
		refs[i] = claim(nanotime())
	}
	if claim(nanotime()) != 0 {
		t.Error("a P has more nodes than expected")
	}
	l.word.Store(locked)
	if l.spinQueued(nanotime()) {
		t.Error("took a held lock")
	}
	l.word.Store(0)
	watch := start(tuned().budget)
	if !l.spinUnqueued(&watch) {
		t.Error("did not take a free lock")
	}
	l.UnlockPinned()
	for _, r := range refs {
		node(r).state.Store(free)
	}
	unpin()
	checkQuiet(t, l)
}

// Who waits alone asks the others to keep out, as the head of a queue does: else
// the owner, which has the word's cache line, could take it again for ever. Its budget
// is longer than a machine ever stands still, which would end it before it is seen to ask.
func TestLoneWaiter_LosesItsPatience(t *testing.T) {
	before, endless := inForce.Load(), *tuned()
	endless.budget = int64(10 * time.Minute)
	inForce.Store(&endless)
	t.Cleanup(func() { inForce.Store(before) })
	withProcs(t, 2)
	locktest.KeepWorldRunning(t)
	l := new(Lock)
	l.Lock()
	done := make(chan struct{})
	go func() {
		l.Lock()
		l.Unlock()
		close(done)
	}()
	for begin := time.Now(); l.word.Load() != locked|pending|nosteal; {
		if time.Since(begin) > time.Minute {
			t.Errorf("word %#x after a minute", l.word.Load())
			break
		}
		pause(10)
	}
	if l.TryLockPinned() {
		t.Error("somebody took the lock past who waits for it")
	}
	l.Unlock()
	<-done
	checkWord(t, "at rest", l, 0)
}

// A goroutine that finds its lock held for long gives its P away. The shortest of
// several waits counts: a thread that is off its CPU sees the end of its budget later.
func TestSpinBudget_PinnedWaitEnds(t *testing.T) {
	l := new(Lock)
	l.word.Store(locked)
	spent := pinnedWait(t, l)
	for range 20 {
		spent = min(spent, pinnedWait(t, l))
	}
	if spent < defaults.Budget || spent > 100*defaults.Budget && !numatest.Emulated() {
		t.Errorf("a pinned wait lasted %v, the budget is %v", spent, defaults.Budget)
	}
	done := make(chan bool)
	go func() { l.Lock(); l.Unlock(); close(done) }()
	for l.word.Load()&parked == 0 {
		runtime.Gosched()
	}
	l.UnlockPinned()
	<-done
	checkQuiet(t, l)
}

// pinnedWait returns how long a pinned wait for l, which is held, lasts.
func pinnedWait(t *testing.T, l *Lock) time.Duration {
	t.Helper()
	pin()
	begin := time.Now()
	got := l.spin(nanotime(), true)
	spent := time.Since(begin)
	unpin()
	if got {
		t.Fatal("took a held lock")
	}
	return spent
}

func TestLockDoesNotAllocate(t *testing.T) {
	l := new(Lock)
	if n := testing.AllocsPerRun(1000, func() { l.Lock(); l.Unlock() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Who has been on the stack before comes first, then who came early; a sleeper of
// another lock is woken.
func TestSleepers_CalledInTurn(t *testing.T) {
	const mine, other = 1, 2
	sleepers := map[string]*sleeper{}
	nap := func(name string, lock uintptr, again bool) *sleeper {
		s := &sleeper{lock: lock, again: again}
		s.parker.Prepare()
		sleepers[name] = s
		return s
	}
	order := func(s *sleeper) (names string) {
		for ; s != nil; s = s.row {
			for name, who := range sleepers {
				if who == s {
					names += name
				}
			}
		}
		return names
	}
	slot := new(sleepSlot)
	slot.push(nap("a", mine, false))
	returned := nap("b", mine, true)
	returned.queue(nap("c", mine, false))
	returned.queue(nap("d", mine, false))
	slot.push(returned)
	slot.push(nap("e", mine, false))
	slot.push(nap("x", other, false))
	slot.push(nap("f", mine, true))
	self := nap("s", mine, false)
	slot.push(self)

	row, found := slot.take(mine, self)
	if got := order(row); got != "bcdfae" || !found || slot.top.Load() != nil {
		t.Errorf("took %s, and the caller: %t; want bcdfae, and the caller", got, found)
	}
	sleepers["x"].parker.Park(rt.ReasonSemacquire, 0) // returns, since it has been woken
	for want := "cdfae"; want != ""; want = want[1:] {
		if row = row.dissolve(); order(row) != want || !row.again {
			t.Errorf("then %s, been there before: %t; want %s", order(row), row.again, want)
		}
	}
	if row.last != nil {
		t.Error("a row of one has a last")
	}
	if row, found := slot.take(mine, self); row != nil || found {
		t.Error("found somebody on the empty stack")
	}
}
