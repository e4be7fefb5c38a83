package parking_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hqsync/hqsync/parking"
)

// A resize stopped in the middle: some queues of a bucket have moved, others
// have not. Newcomers must join their key's queue wherever it is.
func TestHalfMigratedBucket_NewcomersJoinTheirQueue(t *testing.T) {
	for moved := range 5 {
		t.Run(fmt.Sprint(moved), func(t *testing.T) {
			tab := parking.BadTable()
			if err := tab.SetSlots(2, 0); err != nil {
				t.Fatal(err)
			}
			ks := keys(t, 6) // the last two have no queue yet
			order := make([][]*sleeper, len(ks))
			for i, k := range ks[:4] {
				order[i] = sleepers(tab, k, 2)
			}
			finish := tab.BeginResize(16, moved)
			for i, k := range ks {
				if i < 4 && !tab.Waiting(k) {
					t.Fatalf("nobody waits on key %d", i)
				}
				order[i] = append(order[i], sleepers(tab, k, 2)...)
				if n := tab.Queued(k); n != len(order[i]) {
					t.Fatalf("key %d has %d waiters in one queue, not %d", i, n, len(order[i]))
				}
			}
			told := 0
			tab.Waiters(func(parking.WaiterInfo) bool { told++; return true })
			if want := 4*4 + 2*2; told != want {
				t.Errorf("Waiters tells of %d, not %d", told, want)
			}
			for i, k := range ks[:3] {
				wakeAllInOrder(t, tab, k, order[i])
			}
			finish()
			audit(t, tab, 2+4+2)
			for i, k := range ks[3:] {
				wakeAllInOrder(t, tab, k, order[i+3])
			}
			audit(t, tab, 0)
		})
	}
}

// Random operations one after another, in tables that are in the middle of a
// resize for half of the time, against lists.
func TestSequentialModel(t *testing.T) {
	s := seed(t)
	for round := range effort(t, 60) {
		newTable := func() *parking.Table { return new(parking.Table) }
		if round%2 == 0 {
			newTable = parking.BadTable
		}
		model(t, newTable(), rand.New(rand.NewPCG(s, uint64(round))))
	}
}

type modelled struct {
	*sleeper
	cancel context.CancelFunc
}

func model(t *testing.T, tab *parking.Table, rng *rand.Rand) {
	ks := keys(t, 12)
	queues := make([][]modelled, len(ks))
	finish := func() {}
	resizing := false
	wake := func(i int, n int) {
		for _, m := range queues[i][:n] {
			if r := m.wait(t); r.Outcome != parking.Unparked {
				t.Fatalf("%+v", r)
			}
			m.cancel()
		}
		queues[i] = queues[i][n:]
	}
	for range 150 {
		i, j := rng.IntN(len(ks)), rng.IntN(len(ks))
		have := len(queues[i])
		switch op := rng.IntN(10); op {
		case 0, 1, 2, 3:
			ctx, cancel := context.WithCancel(context.Background())
			front := op == 0
			m := modelled{sleep(tab, ks[i], parking.Options{Front: front, Context: ctx}), cancel}
			if front {
				queues[i] = append([]modelled{m}, queues[i]...)
			} else {
				queues[i] = append(queues[i], m)
			}
		case 4:
			r := tab.UnparkOne(ks[i], nil)
			if r.Unparked != min(have, 1) || r.More != (have > 1) {
				t.Fatalf("UnparkOne with %d waiters: %+v", have, r)
			}
			wake(i, r.Unparked)
		case 5:
			n := rng.IntN(4)
			seen := 0
			r := tab.UnparkFilter(ks[i], func(parking.ParkToken) parking.FilterOp {
				if seen++; seen > n {
					return parking.Stop
				}
				return parking.Unpark
			}, nil)
			if r.Unparked != min(n, have) || r.More != (have > n) {
				t.Fatalf("UnparkFilter of %d with %d waiters: %+v", n, have, r)
			}
			wake(i, r.Unparked)
		case 6:
			op := parking.RequeueOp(rng.IntN(4))
			r := requeue(tab, ks[i], ks[j], op)
			woken, moved := 0, 0
			switch op {
			case parking.UnparkOneRequeueRest:
				woken = min(have, 1)
				moved = have - woken
			case parking.RequeueAll:
				moved = have
			case parking.RequeueOne:
				moved = min(have, 1)
			}
			if i == j {
				moved = 0
			}
			if r.Unparked != woken || r.Requeued != moved || r.More != (have > woken+moved) {
				t.Fatalf("requeue op %d with %d waiters, same key %v: %+v", op, have, i == j, r)
			}
			wake(i, woken)
			queues[j] = append(queues[j], queues[i][:moved]...)
			queues[i] = queues[i][moved:]
		case 7:
			if have > 0 {
				n := rng.IntN(have)
				m := queues[i][n]
				m.cancel()
				if r := m.wait(t); r.Outcome != parking.Canceled {
					t.Fatalf("%+v", r)
				}
				queues[i] = slices.Delete(queues[i], n, n+1)
			}
		case 8:
			if !resizing {
				finish = tab.BeginResize(int(someSizes[rng.IntN(4)]), rng.IntN(4))
			} else {
				finish()
				finish = func() {}
			}
			resizing = !resizing
		case 9:
			if !tab.Waiting(ks[i]) && have > 0 {
				t.Fatalf("nobody is said to wait, %d do", have)
			}
		}
		for i, k := range ks {
			if n := tab.Queued(k); n != len(queues[i]) {
				t.Fatalf("key %d has %d waiters in its queue, not %d", i, n, len(queues[i]))
			}
		}
	}
	finish()
	total := 0
	for _, q := range queues {
		total += len(q)
	}
	audit(t, tab, total)
	for i, k := range ks {
		var order []*sleeper
		for _, m := range queues[i] {
			order = append(order, m.sleeper)
		}
		wakeAllInOrder(t, tab, k, order)
		wake(i, len(order))
	}
	audit(t, tab, 0)
}
