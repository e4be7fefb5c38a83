package parking_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

var someSizes = []uint64{2, 4, 16, 64, 1024, 8192}

func TestResize_ParkedWaitersSurvive_OrderPerAddressIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 2))
	for round := range 6 {
		for _, final := range []string{"mutable", "immutable", "global"} {
			t.Run(fmt.Sprintf("%s/%d", final, round), func(t *testing.T) {
				var tab parking.Table
				ks := keys(t, 40)
				order := make([][]*sleeper, len(ks))
				total := 0
				for range 200 {
					i := rng.IntN(len(ks))
					order[i] = append(order[i], sleep(&tab, ks[i], parking.Options{}))
					total++
					if rng.IntN(10) == 0 {
						if err := tab.SetSlots(someSizes[rng.IntN(len(someSizes))], 0); err != nil {
							t.Fatal(err)
						}
						if tab.Slots() != 0 {
							audit(t, &tab, total)
						}
					}
				}
				switch final {
				case "immutable":
					if err := tab.SetSlots(32, parking.Immutable); err != nil {
						t.Fatal(err)
					}
				case "global":
					if err := tab.SetSlots(0, 0); err != nil {
						t.Fatal(err)
					}
				}
				for i, k := range ks {
					if n := tab.Queued(k); n != len(order[i]) {
						t.Fatalf("address %d has %d waiters, not %d", i, n, len(order[i]))
					}
					wakeAllInOrder(t, &tab, k, order[i])
				}
			})
		}
	}
}

func TestResize_NeedsNobodyToWake(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 100)
	var all []*sleeper
	for _, k := range ks {
		all = append(all, sleep(&tab, k, parking.Options{}))
	}
	within(t, patience, func() {
		for i := range 60 {
			n := someSizes[i%len(someSizes)]
			if err := tab.SetSlots(n, 0); err != nil || tab.Slots() != int(n) {
				t.Fatalf("SetSlots(%d): %v, Slots %d", n, err, tab.Slots())
			}
		}
	})
	audit(t, &tab, len(ks))
	for i, k := range ks {
		tab.UnparkOne(k, nil)
		all[i].wait(t)
	}
}

func TestImmutable_TheHashNeverChangesAgain(t *testing.T) {
	for _, n := range []uint64{0, 64} {
		var tab parking.Table
		if err := tab.SetSlots(n, parking.Immutable); err != nil {
			t.Fatal(err)
		}
		slots, id := tab.Slots(), tab.Generation()
		ks := keys(t, 2000) // far more addresses than it would take to grow
		all := make([]*sleeper, len(ks))
		for i, k := range ks {
			all[i] = sleep(&tab, k, parking.Options{})
		}
		if err := tab.SetSlots(128, 0); err != parking.ErrBusy {
			t.Errorf("SetSlots: %v", err)
		}
		if tab.Slots() != slots || tab.Generation() != id {
			t.Error("the hash changed")
		}
		for i, k := range ks {
			tab.UnparkOne(k, nil)
			all[i].wait(t)
		}
	}
}

func TestGrowth_ByCollidingAddresses_UntilSetSlots(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 4000)
	var all []*sleeper
	first := 0
	for i, k := range ks {
		all = append(all, sleep(&tab, k, parking.Options{}))
		if i == 0 {
			first = tab.Slots()
		}
	}
	grown := tab.Slots()
	t.Logf("%d slots for one address, %d for %d", first, grown, len(ks))
	if all := grown * tab.Stats().Nodes; first < 16 || all < len(ks)/4 || all > 16*len(ks) {
		t.Errorf("%d slots for one address, %d for %d", first, grown, len(ks))
	}
	audit(t, &tab, len(ks))
	if err := tab.SetSlots(8, 0); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(t, 100) {
		all = append(all, sleep(&tab, k, parking.Options{}))
		ks = append(ks, k)
	}
	if tab.Slots() != 8 {
		t.Errorf("grew to %d after SetSlots(8)", tab.Slots())
	}
	for i, k := range ks {
		tab.UnparkOne(k, nil)
		all[i].wait(t)
	}
}

func TestGrowth_EndsAtItsLimit(t *testing.T) {
	for _, n := range []int{parking.MaxAutoSlots / 2, parking.MaxAutoSlots} {
		var tab parking.Table
		if got := tab.GrowFrom(n); got != parking.MaxAutoSlots {
			t.Errorf("grew from %d to %d slots, %d are the most", n, got, parking.MaxAutoSlots)
		}
	}
}

// Parks in the crowded buckets of a table that does not grow by itself write nothing
// that others read.
func TestGrowth_ThatHasEnded_IsNotAskedFor(t *testing.T) {
	var tab parking.Table
	if err := tab.SetSlots(2, 0); err != nil {
		t.Fatal(err)
	}
	ks := keys(t, 300)
	var all []*sleeper
	for i, k := range ks {
		all = append(all, sleep(&tab, k, parking.Options{}))
		if i > 200 && tab.AsksToGrow() {
			t.Fatalf("asks to grow with %d addresses in 2 slots, which are final", i+1)
		}
	}
	for i, k := range ks {
		wakeAllInOrder(t, &tab, k, all[i:i+1])
	}
}

func TestGrowth_WaitersOfOneAddress_DoNotGrowTheTable(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	sleepers(&tab, k, 1)
	slots := tab.Slots()
	sleepers(&tab, k, 1000)
	if tab.Slots() != slots {
		t.Errorf("grew from %d to %d", slots, tab.Slots())
	}
	tab.UnparkAll(k, nil)
}

// After any number of resizes the garbage collector has the old generations.
func TestResize_MemoryComesBack(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	s := sleep(&tab, k, parking.Options{})
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range effort(t, 250) {
		for _, n := range []uint64{2, 64, 1024, 65536} {
			if err := tab.SetSlots(n, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tab.SetSlots(16, 0); err != nil {
		t.Fatal(err)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	tab.UnparkOne(k, nil)
	s.wait(t)
}

// Everything at once against a resizer that never rests: parks, wakes, timeouts,
// requeues, moves to other sizes. A lost wake-up hangs.
func TestResizeRacesEverything_NobodyIsLost(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var tab parking.Table
			ks := keys(t, 6)
			var stop atomic.Bool
			var woken, unparked, resizes atomic.Int64
			resizer := make(chan bool)
			go func() {
				defer close(resizer)
				rng := rand.New(rand.NewPCG(1, 1))
				for !stop.Load() {
					if err := tab.SetSlots(someSizes[rng.IntN(5)], 0); err != nil {
						t.Error(err)
					}
					resizes.Add(1)
					runtime.Gosched()
				}
			}()
			parkers := make(chan bool)
			rounds := effort(t, 4000)
			go func() {
				defer close(parkers)
				concurrently(24, func(i int) {
					for j := range rounds / 8 {
						opts := parking.Options{}
						if (i+j)%5 == 0 {
							opts.Deadline = time.Now().Add(time.Duration(j%50) * time.Microsecond)
						}
						if tab.Park(ks[(i+j)%len(ks)], nil, nil, nil, &opts).Outcome == parking.Unparked {
							unparked.Add(1)
						}
					}
				})
			}()
			within(t, patience, func() {
				for i := 0; ; i++ {
					select {
					case <-parkers:
						return
					default:
					}
					k, to := ks[i%len(ks)], ks[(i+i/7)%len(ks)]
					switch i % 4 {
					case 0:
						woken.Add(int64(tab.UnparkOne(k, nil).Unparked))
					case 1:
						woken.Add(int64(requeue(&tab, k, to, parking.UnparkOneRequeueRest).Unparked))
					case 2:
						woken.Add(int64(tab.UnparkFilter(k, func(parking.ParkToken) parking.FilterOp { return parking.Unpark }, nil).Unparked))
					default:
						woken.Add(int64(tab.UnparkAll(k, nil).Unparked))
					}
					if i%16 == 0 {
						runtime.Gosched()
					}
				}
			})
			stop.Store(true)
			<-resizer
			if woken.Load() != unparked.Load() {
				t.Errorf("%d woken, %d woke", woken.Load(), unparked.Load())
			}
			audit(t, &tab, 0)
			t.Logf("%d wakes, %d resizes", woken.Load(), resizes.Load())
		})
	}
}

// Memory that is placed on NUMA nodes is the system's, and goes back to it with
// the hash that it belongs to, not earlier.
func TestPlacedMemory_GoesWithItsHash(t *testing.T) {
	tab := fourNodes()
	k := keys(t, 1)[0]
	s := sleep(tab, k, parking.Options{})
	before := parking.MappedBuckets()
	for range 50 {
		for _, n := range []uint64{1024, 4096} {
			if err := tab.SetSlots(n, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the memory of old generations is back", func() bool {
		runtime.GC()
		return parking.MappedBuckets() <= before+4*4096
	})
	tab.UnparkOne(k, nil)
	s.wait(t)
}
