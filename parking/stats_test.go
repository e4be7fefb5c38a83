package parking_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/lookup"
	"github.com/hqsync/hqsync/parking"
)

func TestStats_CountWhatHappened_AlsoAcrossResizes(t *testing.T) {
	var tab parking.Table
	if s := tab.Stats(); s != (parking.Stats{}) {
		t.Errorf("a fresh table: %+v", s)
	}
	if err := tab.SetSlots(16, 0); err != nil {
		t.Fatal(err)
	}
	ks := keys(t, 10)
	for _, k := range ks {
		sleepers(&tab, k, 3)
	}
	tab.SetSlots(2, 0)
	requeue(&tab, ks[0], ks[1], parking.RequeueAll)
	tab.UnparkOne(ks[1], nil)
	tab.SetSlots(64, 0)
	tab.UnparkFilter(ks[2], func(parking.ParkToken) parking.FilterOp { return parking.Unpark }, nil)
	tab.Park(ks[0], nil, nil, nil, &parking.Options{Deadline: time.Now()}) // leaves by itself: no unpark
	tab.Park(ks[0], func() bool { return false }, nil, nil, &parking.Options{})
	s := tab.Stats()
	if s.Slots != 64 || s.Nodes < 1 || s.Global || s.Immutable || s.Parked != 26 || s.Longest < 1 || s.Longest > 9 ||
		s.Parks != 31 || s.Unparks != 4 || s.Requeues != 3 || s.Resizes != 2 || s.LongestPinned <= 0 {
		t.Errorf("%+v", s)
	}
	for _, k := range ks {
		tab.UnparkAll(k, nil)
	}
	if s := tab.Stats(); s.Parked != 0 || s.Unparks != 30 || s.Longest != 0 {
		t.Errorf("%+v", s)
	}
	if err := tab.SetSlots(0, 0); err != nil {
		t.Fatal(err)
	}
	if s := tab.Stats(); !s.Global || !s.Immutable || s.Slots != 0 || s.Resizes != 3 || s.Unparks < 30 {
		t.Errorf("%+v", s)
	}
}

func TestWaiters_TellsOfEachOne(t *testing.T) {
	var tab, beside parking.Table
	ks := keys(t, 50)
	tab.RecordStacks(true)
	for i, k := range ks {
		k.Node = uint32(i % 2)
		sleep(&tab, k, parking.Options{Token: parking.ParkToken(i), Reason: parking.ReasonCondWait})
	}
	stranger := make(chan error)
	word := new(uint32)
	go func() { stranger <- beside.Wait(parking.WordOf(word), 0, parking.AllBits, 0, parking.Limit{}) }()
	own := make(chan error)
	go func() { own <- tab.Wait(parking.WordOf(word), 0, parking.AllBits, 0, parking.Limit{}) }()
	count := func(tab *parking.Table) (n int) {
		tab.Waiters(func(parking.WaiterInfo) bool { n++; return true })
		return n
	}
	eventually(t, "all are there", func() bool { return count(&tab) == len(ks)+1 && count(&beside) == 1 })
	time.Sleep(time.Millisecond)

	seen := map[parking.Key]bool{}
	tab.Waiters(func(w parking.WaiterInfo) bool {
		if w.Key.Addr == parking.AddrOf(word) {
			return true
		}
		i := int(w.Token)
		if want := (parking.Key{Addr: ks[i].Addr, Node: uint32(i % 2)}); w.Key != want || seen[w.Key] {
			t.Errorf("waiter %d has key %v", i, w.Key)
		}
		seen[w.Key] = true
		if w.Waited < time.Millisecond || w.Waited > time.Hour || w.Reason != parking.ReasonCondWait {
			t.Errorf("%+v", w)
		}
		if f, _ := runtime.CallersFrames(w.Stack).Next(); !strings.Contains(f.Function, "parking_test.sleep") {
			t.Errorf("waiter %d waits in %q", i, f.Function)
		}
		return true
	})
	if len(seen) != len(ks) {
		t.Errorf("%d of %d seen", len(seen), len(ks))
	}
	n := 0
	tab.Waiters(func(parking.WaiterInfo) bool { n++; return n < 7 })
	if n != 7 {
		t.Errorf("f was called %d times after it returned false the 7th time", n)
	}

	tab.RecordStacks(false)
	for i, k := range ks {
		k.Node = uint32(i % 2)
		tab.UnparkAll(k, nil)
	}
	s := sleep(&tab, ks[0], parking.Options{})
	tab.Waiters(func(w parking.WaiterInfo) bool {
		if w.Key == ks[0] && len(w.Stack) != 0 {
			t.Error("a stack although they are not recorded")
		}
		tab.UnparkOne(ks[0], nil) // f may use the table
		return true
	})
	s.wait(t)
	if n, err := tab.Wake(parking.WordOf(word), 9, parking.AllBits, 0); n != 2 || err != nil {
		t.Error(n, err)
	}
	if <-own != nil || <-stranger != nil {
		t.Error("a wait failed")
	}
}

// A record that was given back by who was refused does not bring the stack of that
// one into another wait.
func TestWaiters_StackIsNotThatOfWhoWasRefused(t *testing.T) {
	var recorded, tab parking.Table
	k := keys(t, 1)[0]
	recorded.RecordStacks(true)
	var all []*sleeper
	for range 100 { // the record is taken by the next who parks on the same P
		recorded.Park(k, func() bool { return false }, nil, nil, &parking.Options{})
		all = append(all, sleep(&tab, k, parking.Options{}))
	}
	tab.Waiters(func(w parking.WaiterInfo) bool {
		if len(w.Stack) != 0 {
			f, _ := runtime.CallersFrames(w.Stack).Next()
			t.Errorf("a stack of %s although this table records none", f.Function)
		}
		return !t.Failed()
	})
	wakeAllInOrder(t, &tab, k, all)
}

// Each design of the ladder is a table that works, and only the measured ones
// count references.
func TestLookupDesigns_AllWork(t *testing.T) {
	defer lookup.SetNext(lookup.Pair)
	for _, d := range lookup.Designs() {
		t.Run(d.String(), func(t *testing.T) {
			lookup.SetNext(d)
			var tab parking.Table
			ks := keys(t, 10)
			var all [][]*sleeper
			for i, k := range ks {
				if i%3 == 0 {
					if err := tab.SetSlots(someSizes[i%len(someSizes)], 0); err != nil {
						t.Fatal(err)
					}
				}
				all = append(all, sleepers(&tab, k, 3))
			}
			if c := tab.CountsReferences(); c != (d != lookup.Pair) {
				t.Errorf("references are counted: %v", c)
			}
			for i, k := range ks {
				requeue(&tab, k, ks[(i+1)%len(ks)], parking.RequeueAbort)
				wakeAllInOrder(t, &tab, k, all[i])
			}
			audit(t, &tab, 0)
			if n := tab.References(); n != 0 {
				t.Errorf("%d references are left", n)
			}
			if err := tab.SetSlots(16, parking.Immutable); err != nil || tab.CountsReferences() {
				t.Errorf("an immutable table counts references: %v", err)
			}
		})
	}
}
