package parking_test

import (
	"testing"

	"github.com/hqsync/hqsync/parking"
)

func TestUnparkInTurn_EachWakesTheNext(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	order := sleepers(&tab, k, 3)
	if n := tab.UnparkInTurnFor(0, k); n != 3 || tab.Waiting(k) {
		t.Fatalf("%d taken off, want 3; waiting: %v", n, tab.Waiting(k))
	}
	for i, s := range order {
		for _, later := range order[i+1:] {
			if !later.asleep() {
				t.Fatal("woken before its turn")
			}
		}
		r := s.wait(t)
		if r.Outcome != parking.Unparked {
			t.Fatalf("%+v", r)
		}
		r.WakeNext(0)
	}
	audit(t, &tab, 0)
}

// One whose beforeSleep panics does not return from Park: it passes its turn on.
func TestUnparkInTurn_PanicPassesTheTurnOn(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	first := sleep(&tab, k, parking.Options{})
	var last *sleeper
	func() {
		defer func() { recover() }()
		tab.Park(k, nil, func() {
			last = sleep(&tab, k, parking.Options{})
			tab.UnparkInTurnFor(0, k)
			r := first.wait(t)
			r.WakeNext(0)
			panic("unlock")
		}, nil, &parking.Options{})
	}()
	last.wait(t)
	audit(t, &tab, 0)
}

func TestUnparkOne_NobodyThere(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	if r := tab.UnparkOne(k, nil); r != (parking.UnparkResult{}) {
		t.Errorf("%+v", r)
	}
	if tab.Slots() != 0 {
		t.Error("a wake without waiters cost the table its buckets")
	}
	calls := 0
	tab.UnparkOne(k, func(r parking.UnparkResult) parking.UnparkToken {
		calls++
		if r.Unparked != 0 || r.More {
			t.Errorf("%+v", r)
		}
		return 1
	})
	tab.UnparkAll(k, func(r parking.UnparkResult) parking.UnparkToken { calls++; return 1 })
	if calls != 2 {
		t.Errorf("%d callbacks, 2 expected", calls)
	}
}

func TestUnparkOne_WakesTheOldest_TellsWhetherMore(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	wakeAllInOrder(t, &tab, k, sleepers(&tab, k, 20))
	audit(t, &tab, 0)
}

func TestUnparkAll_AllGetTheToken(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 2)
	all := sleepers(&tab, ks[0], 30)
	other := sleep(&tab, ks[1], parking.Options{})
	r := tab.UnparkAll(ks[0], func(r parking.UnparkResult) parking.UnparkToken {
		if r.Unparked != 30 {
			t.Errorf("callback: %+v", r)
		}
		return 7
	})
	if r.Unparked != 30 || r.More || r.Requeued != 0 {
		t.Errorf("%+v", r)
	}
	for _, s := range all {
		if got := s.wait(t); got.Token != 7 || got.More || got.Outcome != parking.Unparked {
			t.Fatalf("%+v", got)
		}
	}
	audit(t, &tab, 1)
	tab.UnparkAll(ks[1], nil)
	other.wait(t)
}

func TestUnparkFilter_SkipsAndStops(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	all := sleepers(&tab, k, 10)
	var seen []parking.ParkToken
	r := tab.UnparkFilter(k, func(p parking.ParkToken) parking.FilterOp {
		seen = append(seen[:len(seen):len(seen)], p)
		switch {
		case p == 6:
			return parking.Stop
		case p%2 == 1:
			return parking.Unpark
		}
		return parking.Skip
	}, func(r parking.UnparkResult) parking.UnparkToken { return parking.UnparkToken(100 + r.Unparked) })
	if r.Unparked != 3 || !r.More {
		t.Fatalf("%+v", r)
	}
	if len(seen) != 7 {
		t.Fatalf("the filter saw %v", seen)
	}
	for i, p := range seen {
		if int(p) != i {
			t.Fatalf("the filter saw %v", seen)
		}
	}
	var left []*sleeper
	for i, s := range all {
		if i < 6 && i%2 == 1 {
			if got := s.wait(t); got.Token != 103 || !got.More {
				t.Fatalf("%+v", got)
			}
		} else {
			left = append(left, s)
		}
	}
	audit(t, &tab, 7)
	wakeAllInOrder(t, &tab, k, left)
}

// The last waiter of a queue leaves its place to another queue of the bucket:
// that one must not be taken for the rest of the first.
func TestUnparkFilter_EmptiesAQueueAmongOthers_MoreIsFalse(t *testing.T) {
	tab := parking.BadTable()
	ks := keys(t, 5)
	var others []*sleeper
	for _, k := range ks {
		others = append(others, sleep(tab, k, parking.Options{}))
	}
	for i, k := range ks {
		r := tab.UnparkFilter(k, func(parking.ParkToken) parking.FilterOp { return parking.Unpark }, nil)
		if r.Unparked != 1 || r.More {
			t.Fatalf("queue %d: %+v", i, r)
		}
		others[i].wait(t)
		audit(t, tab, len(ks)-i-1)
	}
}

// Both the result and the token's Result tell exactly whether waiters of the
// same key are left, whatever else is in the bucket.
func TestMore_IsExactPerKey(t *testing.T) {
	tab := parking.BadTable()
	ks := keys(t, 3)
	for _, k := range ks {
		sleepers(tab, k, 2)
	}
	for _, k := range ks {
		if r := tab.UnparkOne(k, nil); !r.More {
			t.Fatalf("one of two: %+v", r)
		}
		if r := tab.UnparkOne(k, nil); r.More {
			t.Fatalf("two of two: %+v", r)
		}
	}
}
