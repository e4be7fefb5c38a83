//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// checkQuiet checks what must hold when nobody uses l: the word is 0 and every
// node has come back to its P.
func checkQuiet(t *testing.T, l *Lock) {
	t.Helper()
	if w := l.word.Load(); w&^uint32(parked) != 0 {
		t.Errorf("word %#x at rest", w)
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
	if s := unsafe.Sizeof(sleepSlot{}); s != 64 {
		t.Errorf("a sleep slot takes %d bytes, not a cache line", s)
	}
}

// transition runs f with the calling goroutine pinned and checks the word.
func TestTransitions(t *testing.T) {
	word := func(l *Lock, want uint32, id string) {
		t.Helper()
		if w := l.word.Load(); w != want {
			t.Errorf("%s: word %#x, want %#x", id, w, want)
		}
	}
	now := nanotime()
	pin()
	defer unpin()

	l := new(Lock)
	l.LockPinned()
	word(l, locked, "T1")
	if l.spinPending() {
		t.Error("T5: took a held lock")
	}
	l.word.Or(pending)
	if l.spinPending() {
		t.Error("T5: took a held lock")
	}
	word(l, locked, "T5")

	// A head that waits in vain sets nosteal, leaves, and takes it along.
	if l.spinQueued(now) {
		t.Error("T9: took a held lock")
	}
	word(l, locked, "T6, T10, T11, T9")

	// Two in the queue: the first leaves, the second is the head.
	a, b := claim(), claim()
	if a == 0 || b == 0 || a == b {
		t.Fatalf("claimed nodes %d and %d", a, b)
	}
	if !l.enqueue(a, node(a)) {
		t.Error("N2: the first waiter is not the head")
	}
	if l.enqueue(b, node(b)) {
		t.Error("N1: the second waiter is the head")
	}
	l.leaveHead(a, node(a))
	if s := node(b).state.Load(); s != head {
		t.Errorf("N2: the second waiter is in state %d after the head left", s)
	}
	if s := node(a).state.Load(); s != free {
		t.Errorf("N4: the node of the head that left is in state %d", s)
	}

	// The head takes the free word and the queue is empty.
	l.UnlockPinned()
	word(l, b<<tailShift, "T2")
	if !l.spinHead(b, node(b), nanotime()+spinBudget, true) {
		t.Error("T7: the head did not take a free word")
	}
	word(l, locked, "T7, T11")

	// An abandoned node between head and tail is unlinked.
	a, b, c := claim(), claim(), claim()
	l.enqueue(a, node(a))
	l.enqueue(b, node(b))
	l.enqueue(c, node(c))
	node(b).state.Store(abandoned)
	l.UnlockPinned()
	if !l.spinHead(a, node(a), nanotime()+spinBudget, false) {
		t.Error("T8: the head did not take a free word")
	}
	if s := node(b).state.Load(); s != free {
		t.Errorf("N5: the abandoned node is in state %d", s)
	}
	if s := node(c).state.Load(); s != head {
		t.Errorf("N2: the waiter behind the abandoned one is in state %d", s)
	}
	l.leaveHead(c, node(c))

	// A successor that has taken the tail but not linked itself yet becomes the
	// head by itself.
	a, b = claim(), claim()
	l.enqueue(a, node(a))
	l.word.Store(l.word.Load()&^tailMask | b<<tailShift) // T6, and then a pause
	l.leaveHead(a, node(a))                              // N6
	if s := node(a).next.Load(); s != left {
		t.Errorf("N6: next is %#x", s)
	}
	if node(a).next.Swap(b) != left { // the rest of enqueue
		t.Error("N6: left was lost")
	}
	node(a).state.Store(free)
	node(b).state.Store(head)
	l.leaveHead(b, node(b))

	// An abandoned tail empties the queue.
	a, b = claim(), claim()
	l.enqueue(a, node(a))
	l.enqueue(b, node(b))
	node(b).state.Store(abandoned)
	l.leaveHead(a, node(a))
	word(l, locked, "T9")
	l.UnlockPinned()
	word(l, 0, "T2")
	checkQuiet(t, l)
}

// When a P has no node left its waiters still get the lock.
func TestNoNodeLeft_StillLocks(t *testing.T) {
	l := new(Lock)
	pin()
	refs := []uint32{claim(), claim(), claim(), claim()}
	if claim() != 0 {
		t.Error("a P has more nodes than expected")
	}
	l.word.Store(locked)
	if l.spinQueued(nanotime()) {
		t.Error("took a held lock")
	}
	l.word.Store(0)
	if !l.spinUnqueued(nanotime() + spinBudget) {
		t.Error("did not take a free lock")
	}
	l.UnlockPinned()
	for _, r := range refs {
		node(r).state.Store(free)
	}
	unpin()
	checkQuiet(t, l)
}

// A goroutine that finds its lock held for long gives its P away.
func TestSpinBudget_PinnedWaitEnds(t *testing.T) {
	l := new(Lock)
	l.word.Store(locked)
	pin()
	begin := time.Now()
	got := l.spin(nanotime(), true)
	spent := time.Since(begin)
	unpin()
	if got {
		t.Fatal("took a held lock")
	}
	if spent < spinBudget || spent > 100*spinBudget {
		t.Errorf("a pinned wait lasted %v, the budget is %v", spent, time.Duration(spinBudget))
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

func TestLockDoesNotAllocate(t *testing.T) {
	l := new(Lock)
	if n := testing.AllocsPerRun(1000, func() { l.Lock(); l.Unlock() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
