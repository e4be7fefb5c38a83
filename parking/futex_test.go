package parking_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

func TestErrors_AnswerForTheirErrno(t *testing.T) {
	for err, errno := range map[error]syscall.Errno{
		parking.ErrAgain: syscall.EAGAIN, parking.ErrTimedOut: syscall.ETIMEDOUT, parking.ErrCanceled: syscall.EINTR,
		parking.ErrInvalid: syscall.EINVAL, parking.ErrFault: syscall.EFAULT, parking.ErrBusy: syscall.EBUSY,
		parking.ErrNoMemory: syscall.ENOMEM, parking.ErrNotSupported: syscall.ENOSYS,
	} {
		if !errors.Is(err, errno) || errors.Is(err, syscall.EPIPE) || err == parking.ErrClosed {
			t.Errorf("%v is not, or not only, %v", err, errno)
		}
		//lint:ignore SA1032 the sentinel is what is asked
		if errors.Is(parking.ErrClosed, errno) {
			t.Errorf("%v is %v", parking.ErrClosed, errno)
		}
	}
}

// Conservation of the futex operations: what wakers were told adds up to the
// waits that returned nil and the entries of WaitV that were used up, under
// limits, requeues and resizes (I1).
func TestFutexConservation(t *testing.T) {
	s := seed(t)
	for _, nodes := range [][]int{{0}, {0, 1, 2, 3}} {
		rng := rand.New(rand.NewPCG(s, uint64(len(nodes))))
		var turn atomic.Int32
		tab := parking.NewNUMATable(nodes, func() int { return nodes[int(turn.Add(1))%len(nodes)] }, nil, nil)
		pairs := make([]parking.NUMAWord, 4)
		word := func(i int, f parking.Flags) parking.Word {
			if f&parking.NUMA != 0 {
				return pairs[i].Word()
			}
			return parking.WordOf(&pairs[i].Val)
		}
		flags := []parking.Flags{private, 0, parking.NUMA | private, parking.NUMA, parking.MPOL | private}
		const waiters, wakers = 12, 3
		rounds := effort(t, 300)
		var woken, returned, entriesUsed atomic.Int64
		var left atomic.Int32
		left.Store(waiters)
		seeds := make([]uint64, waiters+wakers)
		for i := range seeds {
			seeds[i] = rng.Uint64()
		}
		within(t, patience, func() {
			concurrently(waiters+wakers, func(me int) {
				rng := rand.New(rand.NewPCG(seeds[me], 9))
				flag := func() parking.Flags { return flags[rng.IntN(len(flags))] }
				if me < waiters {
					for range rounds {
						limit := parking.Limit{}
						cancel := func() {}
						switch rng.IntN(4) {
						case 0:
							limit = parking.Within(time.Duration(rng.IntN(100)) * time.Microsecond)
						case 1:
							limit.Context, cancel = context.WithTimeout(context.Background(), time.Duration(rng.IntN(100))*time.Microsecond)
						}
						if rng.IntN(3) != 0 {
							f := flag()
							if err := tab.Wait(word(rng.IntN(4), f), uint32(rng.IntN(9)/8), parking.AllBits, f, limit); err == nil {
								returned.Add(1)
							} else if err == parking.ErrInvalid {
								t.Error(err)
							}
						} else {
							e := make([]parking.WaitEntry, 1+rng.IntN(6))
							for i := range e {
								f := flag()
								e[i] = parking.WaitEntry{Word: word(rng.IntN(4), f), Flags: f, Val: uint32(rng.IntN(20) / 19)}
							}
							if i, used, err := tab.WaitVCount(e, limit); err == nil {
								if i < 0 || i >= len(e) || used < 1 {
									t.Errorf("index %d, %d used", i, used)
								}
								entriesUsed.Add(int64(used))
							} else if used != 0 {
								t.Errorf("%v with %d wake-ups used", err, used)
							}
						}
						cancel()
					}
					left.Add(-1)
					return
				}
				for left.Load() > 0 {
					f := flag()
					i, j := rng.IntN(4), rng.IntN(4)
					n := 0
					var err error
					switch rng.IntN(4) {
					case 0:
						n, err = tab.Wake(word(i, f), 1+rng.IntN(3), parking.AllBits, f)
					case 1:
						n, _, err = tab.Requeue(word(i, f), word(j, f), rng.IntN(2), rng.IntN(4), f)
					case 2:
						n, err = tab.WakeOp(word(i, f), rng.IntN(3), word(j, f), rng.IntN(3), parking.Op{Kind: parking.OpOr}, f)
					default:
						err = tab.SetSlots(someSizes[rng.IntN(4)], 0)
					}
					if err != nil {
						t.Error(err)
					}
					woken.Add(int64(n))
					runtime.Gosched()
				}
			})
		})
		if woken.Load() != returned.Load()+entriesUsed.Load() {
			t.Errorf("%d nodes: %d woken, but %d waits returned and %d entries were used", len(nodes), woken.Load(), returned.Load(), entriesUsed.Load())
		}
		audit(t, tab, 0)
		if n := tab.AuditGlobal(t); n != 0 {
			t.Errorf("%d are left in the global hash", n)
		}
		t.Logf("%d nodes: %d wake-ups", len(nodes), woken.Load())
	}
}

// Store, then wake: a waiter that saw the old value returns (I2), with one word
// and with one of several.
func TestStoreThenWake_NoWaiterIsLost(t *testing.T) {
	for name, wait := range map[string]func(tab *parking.Table, w, spare *uint32, val uint32) error{
		"Wait": func(tab *parking.Table, w, _ *uint32, val uint32) error {
			return tab.Wait(parking.WordOf(w), val, parking.AllBits, private, parking.Limit{})
		},
		"WaitV": func(tab *parking.Table, w, spare *uint32, val uint32) error {
			_, err := tab.WaitV([]parking.WaitEntry{
				{Word: parking.WordOf(spare), Flags: private}, {Word: parking.WordOf(w), Val: val, Flags: private},
			}, parking.Limit{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tab parking.Table
			words := make([]uint32, 3)
			rounds := uint32(effort(t, 30_000))
			within(t, patience, func() {
				concurrently(2, func(me int) {
					mine, theirs := &words[me], &words[1-me]
					for n := range rounds {
						atomic.AddUint32(theirs, 1)
						if _, err := tab.Wake(parking.WordOf(theirs), 1, parking.AllBits, private); err != nil {
							t.Error(err)
						}
						for atomic.LoadUint32(mine) <= n {
							if err := wait(&tab, mine, &words[2], n); err != nil && err != parking.ErrAgain {
								t.Error(err)
							}
						}
					}
				})
			})
			audit(t, &tab, 0)
		})
	}
}

// The race detector sees the edge from waker to waiter, also through a requeue.
func TestWakerSynchronizesBeforeWaiter(t *testing.T) {
	var tab parking.Table
	words := make([]uint32, 3)
	for range effort(t, 200) {
		data := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := tab.Wait(parking.WordOf(&words[0]), 0, parking.AllBits, private, parking.Limit{}); err != nil || data != 1 {
				t.Error(err, data)
			}
			data = 2
		})
		eventually(t, "it waits", func() bool {
			_, n, _ := tab.Requeue(parking.WordOf(&words[0]), parking.WordOf(&words[1]), 0, 1, private)
			return n == 1
		})
		data = 1
		if n, err := tab.Wake(parking.WordOf(&words[1]), 1, parking.AllBits, private); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wg.Wait()

		wg.Go(func() {
			if _, err := tab.WaitV(entries(&words[0], &words[1]), parking.Limit{}); err != nil || data != 3 {
				t.Error(err, data)
			}
		})
		eventually(t, "it waits", func() bool { return tab.Stats().Parked == 2 })
		data = 3
		if n, err := tab.Wake(parking.WordOf(&words[1]), 1, parking.AllBits, private); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wg.Wait()
	}
}

func TestClose_EndsEveryWait(t *testing.T) {
	b := newBench(t, 0, 1)
	twin := parking.NewNUMATable(nil, nil, nil, b.Table)
	words := make([]uint32, 8)
	pair := &parking.NUMAWord{}
	errs := make(chan error, 100)
	n := 0
	start := func(f func() error) { n++; go func() { errs <- f() }() }
	for i, f := range []parking.Flags{private, 0} {
		for range 3 {
			start(func() error {
				return b.Wait(parking.WordOf(&words[i]), 0, parking.AllBits, f, parking.Limit{})
			})
		}
	}
	start(func() error { return b.Wait(pair.Word(), 0, parking.AllBits, parking.NUMA, parking.Within(time.Hour)) })
	start(func() error {
		_, err := b.WaitV(append(entries(&words[0], &words[5]), parking.WaitEntry{Word: pair.Word(), Flags: parking.NUMA}), parking.Limit{})
		return err
	})
	layer1 := sleep(b.Table, parking.Key{Addr: parking.AddrOf(&words[6])}, parking.Options{})
	survivor := make(chan error, 1)
	go func() {
		survivor <- twin.Wait(parking.WordOf(&words[1]), 0, parking.AllBits, 0, parking.Limit{})
	}()
	eventually(t, "all wait", func() bool { return b.waiting() == 3+3+1+3+1 })
	eventually(t, "the twin's waits", func() bool {
		n := 0
		twin.Waiters(func(parking.WaiterInfo) bool { n++; return true })
		return n == 1
	})

	concurrently(3, func(int) {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for range n {
		if err := <-errs; err != parking.ErrClosed {
			t.Errorf("a wait ended with %v", err)
		}
	}
	if r := layer1.wait(t); r.Outcome != parking.Closed {
		t.Errorf("%+v", r)
	}
	w := parking.WordOf(&words[0])
	_, wake := b.Wake(w, 1, parking.AllBits, private)
	_, _, requeue := b.Requeue(w, w, 1, 1, private)
	_, op := b.WakeOp(w, 1, w, 1, parking.Op{}, private)
	_, waitv := b.WaitV(entries(&words[0]), parking.Limit{})
	for name, err := range map[string]error{
		"Wake": wake, "Requeue": requeue, "WakeOp": op, "WaitV": waitv, "SetSlots": b.SetSlots(64, 0),
		"Wait": b.Wait(w, 0, parking.AllBits, private, parking.Limit{}),
	} {
		if err != parking.ErrClosed {
			t.Errorf("%s of a closed table: %v", name, err)
		}
	}
	if r := b.Park(parking.Key{Addr: 8}, nil, nil, nil, &parking.Options{}); r.Outcome != parking.Closed {
		t.Errorf("%+v", r)
	}
	audit(t, b.Table, 0)
	// A table beside it is as before.
	if k, err := twin.Wake(parking.WordOf(&words[1]), 9, parking.AllBits, 0); k != 1 || err != nil {
		t.Errorf("the twin's wake: %d, %v", k, err)
	}
	if err := <-survivor; err != nil {
		t.Error(err)
	}
	if err := parking.Default().Close(); err != parking.ErrInvalid {
		t.Errorf("closing the default table: %v", err)
	}
}

func TestClose_RacesEverything(t *testing.T) {
	for i := range effort(t, 20) {
		tab := new(parking.Table)
		words := make([]uint32, 3)
		within(t, patience, func() {
			concurrently(9, func(me int) {
				w := parking.WordOf(&words[me%3])
				for {
					var err error
					switch me {
					case 8:
						for range i {
							runtime.Gosched()
						}
						err = tab.Close()
						if err == nil {
							return
						}
					case 7:
						err = tab.SetSlots(someSizes[i%4], 0)
					case 6:
						_, _, err = tab.Requeue(w, parking.WordOf(&words[(i+1)%3]), 0, 3, private)
					case 5:
						_, err = tab.Wake(w, 1, parking.AllBits, private)
					case 4:
						_, err = tab.WaitV(entries(&words[0], &words[1], &words[2]), parking.Limit{})
					default:
						err = tab.Wait(w, 0, parking.AllBits, private, parking.Limit{})
					}
					if err == parking.ErrClosed {
						return
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		})
		audit(t, tab, 0)
	}
}

func TestFutexSteadyState_AllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties caches at random")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	wait := 0.0
	if !rt.Pinnable {
		wait = 1 // the channel that a wait in this build needs
	}
	var tab parking.Table
	var word, other uint32
	pair := &parking.NUMAWord{}
	w, o := parking.WordOf(&word), parking.WordOf(&other)
	list := entries(&word, &other)
	stale := entries(&word, &other)
	stale[1].Val = 1
	partner := make(chan bool)
	go func() { // wakes whoever sleeps on other
		defer close(partner)
		for {
			n, err := tab.Wake(o, 1, parking.AllBits, private)
			if err != nil {
				return
			}
			if n == 0 {
				runtime.Gosched()
			}
		}
	}()
	past := parking.Limit{Deadline: time.Now().Add(-time.Second)}
	for _, c := range []struct {
		name string
		max  float64
		f    func()
	}{
		{"Wait, value differs", wait, func() { tab.Wait(w, 1, parking.AllBits, private, parking.Limit{}) }},
		{"Wait, woken", wait, func() { tab.Wait(o, 0, parking.AllBits, private, parking.Limit{}) }},
		{"Wait, too late", wait, func() { tab.Wait(w, 0, parking.AllBits, private, past) }},
		{"Wait, NUMA, value differs", wait, func() { tab.Wait(pair.Word(), 1, parking.AllBits, parking.NUMA, parking.Limit{}) }},
		{"Wake, nobody", 0, func() { tab.Wake(w, 1, parking.AllBits, private) }},
		{"Wake, NUMA, nobody", 0, func() { tab.Wake(pair.Word(), 1, parking.AllBits, parking.NUMA) }},
		{"Requeue, nobody", 0, func() { tab.Requeue(w, w, 1, 1, private) }},
		{"WakeOp, nobody", 0, func() { tab.WakeOp(w, 1, w, 1, parking.Op{Kind: parking.OpOr}, private) }},
		{"WaitV, value differs", 2 * wait, func() { tab.WaitV(stale, parking.Limit{}) }},
		{"WaitV, woken", 2 * wait, func() { tab.WaitV(list, parking.Limit{}) }},
	} {
		if n := testing.AllocsPerRun(100, c.f); n > c.max {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	tab.Close()
	<-partner
}

// Two wakers have taken two records of one goroutine off their queues, and the
// second is slow: WaitV, woken by the first, may not return before it is through,
// since the records are used again then.
func TestWaitV_WaitsForASlowWaker(t *testing.T) {
	var tab parking.Table
	words := make([]uint32, 3)
	for range 20 {
		type result struct {
			index, used int
			err         error
		}
		done := make(chan result, 1)
		go func() {
			i, n, err := tab.WaitVCount(entries(&words[0], &words[1], &words[2]), parking.Limit{})
			done <- result{i, n, err}
		}()
		eventually(t, "it waits", func() bool { return tab.Stats().Parked == 3 })
		key := func(i int) parking.Key { return parking.Key{Addr: parking.AddrOf(&words[i])} }
		slow, fast := tab.TakeOff(key(1)), tab.TakeOff(key(2))
		fast()
		select {
		case r := <-done:
			t.Fatalf("returned %+v before the second waker was through", r)
		case <-time.After(2 * time.Millisecond):
		}
		slow()
		select {
		case r := <-done:
			if r != (result{1, 2, nil}) {
				t.Fatalf("%+v", r)
			}
		case <-time.After(patience):
			t.Fatal("the second waker's signal was lost")
		}
		audit(t, &tab, 0)
	}
}
