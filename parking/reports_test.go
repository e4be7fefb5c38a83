package parking_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// Mistakes that other tables made, each with the test that would have found it
// here: B numbers are reports about Linux's futex hash, P numbers about parking
// lots and other tables in user space. More of them: TestB4 and TestB8 in
// setslots_test.go, TestB5 in numa_test.go, TestP13 in waiting_test.go, TestP24
// in reuse_test.go.

// B11 (CVE-2026-31554): source and target of a requeue had different flags. Here
// one argument is for both, so what can differ is the kind of word.
func TestB11_RequeueBetweenKindsOfWords_IsRefused(t *testing.T) {
	b := newBench(t)
	var plain uint32
	pair := &parking.NUMAWord{Node: parking.NoNode}
	b.wait(0, parking.WordOf(&plain), 0, parking.AllBits, private)
	b.wait(1, pair.Word(), 0, parking.AllBits, parking.NUMA|private)
	for _, c := range []struct{ from, to parking.Word }{
		{parking.WordOf(&plain), pair.Word()}, {pair.Word(), parking.WordOf(&plain)},
	} {
		if w, m, err := b.CmpRequeue(c.from, c.to, 0, 1, 1, parking.NUMA|private); err != parking.ErrInvalid || w+m != 0 {
			t.Errorf("%d/%d, %v", w, m, err)
		}
	}
	b.node(pair, 0) // by the waiter
	// With the flag of the plain word the pair is a plain word too.
	if w, m, err := b.CmpRequeue(parking.WordOf(&plain), pair.Word(), 0, 0, 1, private); w != 0 || m != 1 || err != nil {
		t.Errorf("%d/%d, %v", w, m, err)
	}
	b.wake(pair.Word(), 9, parking.AllBits, private, 1)
	b.woke(0)
	b.wake(pair.Word(), 9, parking.AllBits, parking.NUMA|private, 1)
	b.woke(1)
}

// P1 (cpython#114944): UnparkAll took a waiter off that was taking itself off.
func TestP1_UnparkAllAgainstCancels_NobodyIsTakenOffTwice(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	var woken, unparked atomic.Int64
	for range effort(t, 200) {
		ctx, cancel := context.WithCancel(context.Background())
		var all []*sleeper
		for i := range 20 {
			opts := parking.Options{}
			if i%2 == 0 {
				opts.Context = ctx
			}
			all = append(all, sleep(&tab, k, opts))
		}
		go cancel()
		n := tab.UnparkAll(k, nil).Unparked
		n += tab.UnparkAll(k, nil).Unparked
		woken.Add(int64(n))
		for _, s := range all {
			if s.wait(t).Outcome == parking.Unparked {
				unparked.Add(1)
			}
		}
		audit(t, &tab, 0)
	}
	if woken.Load() != unparked.Load() {
		t.Errorf("%d were woken, %d say so", woken.Load(), unparked.Load())
	}
}

// P2 (cpython#148820): a record was reused before the waker was through with it.
// Wakes and timeouts race on few records; a late waker would end the next wait,
// with the last one's token.
func TestP2_RecordIsReused_OnlyAfterItsWakerIsThrough(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var tab parking.Table
	k := keys(t, 1)[0]
	rounds := effort(t, 4000)
	var stop atomic.Bool
	var given atomic.Uint64
	waker := make(chan bool)
	go func() {
		defer close(waker)
		for !stop.Load() {
			tab.UnparkOne(k, func(r parking.UnparkResult) parking.UnparkToken {
				return parking.UnparkToken(given.Add(1))
			})
			runtime.Gosched()
		}
	}()
	var seen sync.Map
	within(t, patience, func() {
		concurrently(4, func(i int) {
			rng := rand.New(rand.NewPCG(uint64(i), 5))
			for range rounds / 4 {
				r := tab.Park(k, nil, nil, nil, &parking.Options{Deadline: time.Now().Add(time.Duration(rng.IntN(20)) * time.Microsecond)})
				if r.Outcome == parking.Unparked {
					if _, twice := seen.LoadOrStore(r.Token, true); twice || r.Token == 0 {
						t.Errorf("token %d was received twice", r.Token)
					}
				} else if r.Token != 0 {
					t.Errorf("%v with token %d", r.Outcome, r.Token)
				}
			}
		})
	})
	stop.Store(true)
	<-waker
	audit(t, &tab, 0)
}

// P5 (parking_lot#465): a lock's timed-out waiter cleared its parked bit outside
// the queue's lock. timedOut runs under it: a lock with one such bit and tiny
// timeouts never strands anybody.
func TestP5_TimedOutRunsUnderTheBucketLock_NoWaiterIsStranded(t *testing.T) {
	const locked, parked = 1, 2
	var tab parking.Table
	word, edge := new(atomic.Uint32), new(atomic.Uint32)
	k := parking.Key{Addr: parking.AddrOf(word)}
	lock := func(deadline time.Time) bool {
		for {
			s := word.Load()
			if s&locked == 0 {
				if word.CompareAndSwap(s, s|locked) {
					edge.Add(1)
					return true
				}
				continue
			}
			if s&parked == 0 && !word.CompareAndSwap(s, s|parked) {
				continue
			}
			r := tab.Park(k, func() bool { return word.Load() == locked|parked }, nil, func(_ parking.Key, last bool) {
				if last {
					word.And(^uint32(parked))
				}
			}, &parking.Options{Deadline: deadline})
			if r.Outcome == parking.TimedOut {
				return false
			}
		}
	}
	unlock := func() {
		edge.Add(1) // for the race detector, which does not watch callbacks
		if word.CompareAndSwap(locked, 0) {
			return
		}
		tab.UnparkOne(k, func(r parking.UnparkResult) parking.UnparkToken {
			if r.More {
				word.Store(parked)
			} else {
				word.Store(0)
			}
			return 0
		})
	}
	rounds := effort(t, 20000)
	inside, entered := 0, atomic.Int64{}
	within(t, patience, func() {
		concurrently(8, func(i int) {
			for j := range rounds / 8 {
				var deadline time.Time
				if i%2 == 0 {
					deadline = time.Now().Add(time.Duration(j%30) * time.Microsecond)
				}
				if lock(deadline) {
					inside++
					if inside != 1 {
						t.Error("two inside")
					}
					if j%8 == 0 {
						runtime.Gosched()
					}
					inside--
					entered.Add(1)
					unlock()
				}
			}
		})
	})
	if word.Load()&locked != 0 {
		t.Errorf("the word is %d", word.Load())
	}
	audit(t, &tab, 0)
	t.Logf("entered %d times", entered.Load())
}

// P14 (endive#106): a waiter that came after the wake took what was meant for
// one who was there before (I3).
func TestP14_WaitAfterAWake_IsNotSatisfiedByIt(t *testing.T) {
	b := newBench(t)
	var word uint32
	w := parking.WordOf(&word)
	for range effort(t, 500) {
		b.wait(0, w, 0, parking.AllBits, private)
		b.wake(w, 5, parking.AllBits, private, 1)
		late := make(chan error, 1)
		go func() { late <- b.Wait(w, 0, parking.AllBits, private, parking.Within(200*time.Microsecond)) }()
		b.woke(0)
		if err := <-late; err != parking.ErrTimedOut {
			t.Fatalf("the late waiter returned %v", err)
		}
	}
}

// P15 (litebox#1267): a waiter was queued before its validation and swallowed a
// wake-up (I4). Those who will be refused stand in the way of one who sleeps.
func TestP15_WaiterThatIsRefused_TakesNoWakeUp(t *testing.T) {
	b := newBench(t)
	var word uint32
	w := parking.WordOf(&word)
	var stop atomic.Bool
	var refused sync.WaitGroup
	for range 3 {
		refused.Go(func() {
			for !stop.Load() {
				if err := b.Wait(w, 1, parking.AllBits, private, parking.Limit{}); err != parking.ErrAgain {
					t.Error(err)
				}
				runtime.Gosched()
			}
		})
	}
	for range effort(t, 1000) {
		b.wait(0, w, 0, parking.AllBits, private)
		b.wake(w, 1, parking.AllBits, private, 1)
		b.woke(0)
	}
	stop.Store(true)
	refused.Wait()
}

// P17 (asterinas#1587): a waiter that had timed out was still queued, and one
// that left by key took another's entry with it.
func TestP17_TimedOutWaiters_LeaveNothingAndTakeNobodyWithThem(t *testing.T) {
	b := newBench(t)
	var word uint32
	w := parking.WordOf(&word)
	for range effort(t, 100) {
		stay := 0
		b.wait(stay, w, 0, parking.AllBits, private)
		concurrently(8, func(i int) {
			if err := b.Wait(w, 0, parking.AllBits, private, parking.Within(time.Duration(i*20)*time.Microsecond)); err != parking.ErrTimedOut {
				t.Error(err)
			}
		})
		if n := b.waiting(); n != 1 {
			t.Fatalf("%d are queued, one is there", n)
		}
		b.wake(w, 1, parking.AllBits, private, 1)
		b.woke(stay)
	}
}

// P19 (sharedmem#41): wake(n) took all off and woke n.
func TestP19_WakeOfSome_LeavesTheOthersQueued(t *testing.T) {
	b := newBench(t)
	var word uint32
	w := parking.WordOf(&word)
	b.waitMany(10, w)
	next := 0
	for _, n := range []int{3, 0, 1, 4, 100} {
		want := min(n, 10-next)
		b.wake(w, n, parking.AllBits, private, want)
		var who []int
		for range want {
			who = append(who, next)
			next++
		}
		b.woke(who...)
		if left := b.waiting(); left != 10-next {
			t.Fatalf("%d are left after waking %d", left, next)
		}
	}
}
