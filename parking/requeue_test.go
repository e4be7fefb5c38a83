package parking_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/parking"
)

// tables calls f with a table whose keys spread and with one whose keys share a
// bucket, so that a requeue happens between two buckets and within one.
func tables(t *testing.T, f func(t *testing.T, tab *parking.Table)) {
	t.Run("spread", func(t *testing.T) {
		tab := new(parking.Table)
		if err := tab.SetSlots(4096, 0); err != nil {
			t.Fatal(err)
		}
		f(t, tab)
	})
	t.Run("one bucket", func(t *testing.T) { f(t, parking.BadTable()) })
}

func requeue(tab *parking.Table, from, to parking.Key, op parking.RequeueOp) parking.UnparkResult {
	return tab.UnparkRequeue(from, to, func(int) parking.RequeueOp { return op }, nil)
}

func TestRequeue_EachOp(t *testing.T) {
	for _, c := range []struct {
		op              parking.RequeueOp
		woken, requeued int
	}{
		{parking.RequeueAbort, 0, 0},
		{parking.UnparkOneRequeueRest, 1, 4},
		{parking.RequeueAll, 0, 5},
		{parking.RequeueOne, 0, 1},
	} {
		tables(t, func(t *testing.T, tab *parking.Table) {
			ks := keys(t, 3)
			bystander := sleep(tab, ks[2], parking.Options{})
			src, dst := sleepers(tab, ks[0], 5), sleepers(tab, ks[1], 2)
			r := tab.UnparkRequeue(ks[0], ks[1], func(n int) parking.RequeueOp {
				if n != 5 {
					t.Errorf("decide was told %d", n)
				}
				return c.op
			}, func(op parking.RequeueOp, r parking.UnparkResult) parking.UnparkToken {
				if op != c.op || r.Unparked != c.woken || r.Requeued != c.requeued {
					t.Errorf("callback was told %d %+v", op, r)
				}
				return 9
			})
			if r.Unparked != c.woken || r.Requeued != c.requeued || r.More != (c.woken+c.requeued < 5) {
				t.Fatalf("op %d: %+v", c.op, r)
			}
			if c.woken == 1 {
				if got := src[0].wait(t); got.Token != 9 || !got.More {
					t.Fatalf("woken with %+v", got)
				}
			}
			audit(t, tab, 8-c.woken)
			moved := c.woken + c.requeued
			wakeAllInOrder(t, tab, ks[1], append(dst, src[c.woken:moved]...))
			wakeAllInOrder(t, tab, ks[0], src[moved:])
			wakeAllInOrder(t, tab, ks[2], []*sleeper{bystander})
			audit(t, tab, 0)
		})
	}
}

func TestRequeue_OntoItself_MovesNothing(t *testing.T) {
	tables(t, func(t *testing.T, tab *parking.Table) {
		k := keys(t, 1)[0]
		all := sleepers(tab, k, 4)
		if r := requeue(tab, k, k, parking.RequeueAll); r.Requeued != 0 || !r.More {
			t.Fatalf("%+v", r)
		}
		if r := requeue(tab, k, k, parking.UnparkOneRequeueRest); r.Unparked != 1 || r.Requeued != 0 || !r.More {
			t.Fatalf("%+v", r)
		}
		if got := all[0].wait(t); !got.More {
			t.Fatalf("%+v", got)
		}
		wakeAllInOrder(t, tab, k, all[1:])
		audit(t, tab, 0)
	})
}

func TestRequeue_NobodyThere(t *testing.T) {
	tables(t, func(t *testing.T, tab *parking.Table) {
		ks := keys(t, 2)
		s := sleep(tab, ks[1], parking.Options{})
		if r := requeue(tab, ks[0], ks[1], parking.UnparkOneRequeueRest); r != (parking.UnparkResult{}) {
			t.Fatalf("%+v", r)
		}
		audit(t, tab, 1)
		tab.UnparkAll(ks[1], nil)
		s.wait(t)
	})
}

// While decide runs the moved waiters count as waiting on the target: who sees
// what decide announces must not conclude that nobody is there.
func TestRequeue_DecideAnnounces_WaitingOnTargetIsTrue(t *testing.T) {
	var tab parking.Table
	if err := tab.SetSlots(4096, 0); err != nil {
		t.Fatal(err)
	}
	ks := keys(t, 2)
	s := sleep(&tab, ks[0], parking.Options{})
	var seen bool
	tab.UnparkRequeue(ks[0], ks[1], func(int) parking.RequeueOp {
		seen = tab.Waiting(ks[1]) // not allowed to users; takes no lock
		return parking.RequeueAll
	}, nil)
	if !seen {
		t.Error("nobody was waiting on the target when decide ran")
	}
	if tab.Waiting(ks[0]) || !tab.Waiting(ks[1]) {
		t.Error("the counts did not follow the waiter")
	}
	tab.UnparkOne(ks[1], nil)
	s.wait(t)
}

func TestRequeue_AcrossAnyResize_OrderIsKept(t *testing.T) {
	for _, slots := range []uint64{2, 4, 64, 8192, 0} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			var tab parking.Table
			ks := keys(t, 3)
			a, b := sleepers(&tab, ks[0], 3), sleepers(&tab, ks[1], 3)
			requeue(&tab, ks[0], ks[1], parking.RequeueAll)
			if err := tab.SetSlots(slots, 0); err != nil {
				t.Fatal(err)
			}
			c := sleepers(&tab, ks[2], 2)
			requeue(&tab, ks[1], ks[2], parking.RequeueOne)
			requeue(&tab, ks[1], ks[2], parking.RequeueAll)
			wakeAllInOrder(t, &tab, ks[2], append(append(c, b...), a...))
		})
	}
}
