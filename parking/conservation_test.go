package parking_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// Random parks, with and without limits, against random wakes, requeues and
// resizes: every wake-up that a waker was told about has one goroutine that
// returned Unparked for it, carrying that waker's token, and nothing is left.
func TestConservation(t *testing.T) {
	s := seed(t)
	for _, procs := range []int{1, 2, 8} {
		for name, tab := range map[string]*parking.Table{"spread": new(parking.Table), "one bucket": parking.BadTable(), "global": globalTable(t), "four nodes": fourNodes()} {
			t.Run(fmt.Sprintf("%s/procs=%d", name, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				conserve(t, tab, rand.New(rand.NewPCG(s, uint64(procs))), name != "global")
			})
		}
	}
}

func fourNodes() *parking.Table {
	return parking.NewNUMATable([]int{0, 1, 2, 3}, func() int { return 0 }, nil, nil)
}

func globalTable(t *testing.T) *parking.Table {
	tab := new(parking.Table)
	if err := tab.SetSlots(0, 0); err != nil {
		t.Fatal(err)
	}
	return tab
}

func conserve(t *testing.T, tab *parking.Table, rng *rand.Rand, resize bool) {
	const parkers, wakers = 16, 3
	ks := keys(t, 5)
	for i := range ks {
		ks[i].Node = uint32(i % 4)
	}
	rounds := effort(t, 400)
	var given, taken [1 << 12]atomic.Int32 // by token: wake-ups given out and received
	var left atomic.Int32
	left.Store(parkers)
	seeds := make([]uint64, parkers+wakers)
	for i := range seeds {
		seeds[i] = rng.Uint64()
	}
	within(t, patience, func() {
		concurrently(parkers+wakers, func(me int) {
			rng := rand.New(rand.NewPCG(seeds[me], 7))
			if me < parkers {
				for range rounds {
					r := parkSomehow(tab, ks[rng.IntN(len(ks))], rng)
					if r.Outcome == parking.Unparked {
						taken[r.Token].Add(1)
					}
				}
				left.Add(-1)
				return
			}
			for left.Load() > 0 {
				token := parking.UnparkToken(rng.IntN(len(given)))
				given[token].Add(int32(wakeSomehow(tab, ks, token, rng)))
				if resize && rng.IntN(8) == 0 {
					if err := tab.SetSlots(someSizes[rng.IntN(len(someSizes))], 0); err != nil {
						t.Error(err)
					}
				}
				runtime.Gosched()
			}
		})
	})
	sum := int32(0)
	for i := range given {
		if given[i].Load() != taken[i].Load() {
			t.Fatalf("token %d was given to %d goroutines and received by %d", i, given[i].Load(), taken[i].Load())
		}
		sum += given[i].Load()
	}
	audit(t, tab, 0)
	t.Logf("%d wake-ups", sum)
}

func parkSomehow(tab *parking.Table, k parking.Key, rng *rand.Rand) parking.Result {
	opts := parking.Options{Front: rng.IntN(4) == 0, Token: parking.ParkToken(rng.IntN(2))}
	cancel := func() {}
	switch rng.IntN(6) {
	case 0:
		opts.Deadline = time.Now().Add(time.Duration(rng.IntN(100)-10) * time.Microsecond)
	case 1:
		opts.Context, cancel = context.WithTimeout(context.Background(), time.Duration(rng.IntN(100))*time.Microsecond)
	}
	defer cancel()
	var validate func() bool
	if rng.IntN(8) == 0 {
		validate = func() bool { return rng.IntN(2) == 0 }
	}
	var before func()
	if rng.IntN(8) == 0 {
		before = runtime.Gosched
	}
	return tab.Park(k, validate, before, nil, &opts)
}

func wakeSomehow(tab *parking.Table, ks []parking.Key, token parking.UnparkToken, rng *rand.Rand) int {
	k, to := ks[rng.IntN(len(ks))], ks[rng.IntN(len(ks))]
	give := func(parking.UnparkResult) parking.UnparkToken { return token }
	switch rng.IntN(4) {
	case 0:
		return tab.UnparkOne(k, give).Unparked
	case 1:
		return tab.UnparkAll(k, give).Unparked
	case 2:
		return tab.UnparkFilter(k, func(p parking.ParkToken) parking.FilterOp { return parking.FilterOp(p) }, give).Unparked
	}
	op := parking.RequeueOp(rng.IntN(4))
	return tab.UnparkRequeue(k, to, func(int) parking.RequeueOp { return op },
		func(parking.RequeueOp, parking.UnparkResult) parking.UnparkToken { return token }).Unparked
}
