package parking_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

func TestPark_ValidateFails_DoesNotSleep(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	slept := false
	r := tab.Park(k, func() bool { return false }, func() { slept = true }, nil, &parking.Options{})
	if r.Outcome != parking.Invalid || slept {
		t.Fatalf("%+v, beforeSleep ran: %v", r, slept)
	}
	if tab.Waiting(k) {
		t.Error("somebody is said to wait")
	}
	audit(t, &tab, 0)
}

func TestPark_ValidateRunsOnce_BeforeAWakerCanFindTheWaiter(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	calls := 0
	within(t, patience, func() {
		r := tab.Park(k, func() bool { calls++; return true }, func() {
			if n := tab.UnparkOne(k, nil).Unparked; n != 1 {
				t.Errorf("a queued waiter was not found: %d", n)
			}
		}, nil, &parking.Options{})
		if r.Outcome != parking.Unparked || calls != 1 {
			t.Errorf("%+v after %d validations", r, calls)
		}
	})
	audit(t, &tab, 0)
}

func TestPark_BeforeSleepMayBlockAndUseTheTable(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 2)
	other := sleep(&tab, ks[1], parking.Options{})
	s := make(chan parking.Result, 1)
	go func() {
		s <- tab.Park(ks[0], nil, func() {
			time.Sleep(time.Millisecond)
			tab.UnparkOne(ks[1], nil)
			if err := tab.SetSlots(256, 0); err != nil {
				t.Error(err)
			}
		}, nil, &parking.Options{})
	}()
	other.wait(t)
	eventually(t, "wake after the resize", func() bool { return tab.UnparkOne(ks[0], nil).Unparked == 1 })
	if r := <-s; r.Outcome != parking.Unparked {
		t.Fatalf("%+v", r)
	}
}

func TestPark_QueueIsFIFO_FrontGoesAhead(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	order := sleepers(&tab, k, 3)
	first := sleep(&tab, k, parking.Options{Front: true})
	order = append([]*sleeper{first}, order...)
	order = append(order, sleep(&tab, k, parking.Options{}))
	audit(t, &tab, 5)
	wakeAllInOrder(t, &tab, k, order)
	audit(t, &tab, 0)
}

func TestPark_SinceBeginsAnewOnAnotherKey(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 2)
	s := sleep(&tab, ks[0], parking.Options{})
	time.Sleep(20 * time.Millisecond)
	moved := rt.Nanotime()
	all := func(int) parking.RequeueOp { return parking.RequeueAll }
	if r := tab.UnparkRequeue(ks[0], ks[1], all, nil); r.Requeued != 1 {
		t.Fatalf("requeued %d, want 1", r.Requeued)
	}
	if since := tab.UnparkOne(ks[1], nil).Since; since < moved {
		t.Errorf("on the second key since %d, moved there at %d or later", since, moved)
	}
	s.wait(t)
}

func TestPark_SinceIsCarriedOn(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	began := rt.Nanotime()
	s := sleep(&tab, k, parking.Options{Token: 7})
	queued := rt.Nanotime()
	r := tab.UnparkOne(k, nil)
	if r.Since < began || r.Since > queued || r.Token != 7 {
		t.Errorf("woken: since %d with token %d, want between %d and %d, and 7", r.Since, r.Token, began, queued)
	}
	since := s.wait(t).Since
	if since != r.Since {
		t.Errorf("the waiter is told that it began at %d, its waker %d", since, r.Since)
	}
	s = sleep(&tab, k, parking.Options{Since: since})
	if r := tab.UnparkOne(k, nil); r.Since != since || r.Token != 0 {
		t.Errorf("woken: since %d with token %d, want %d and 0", r.Since, r.Token, since)
	}
	if got := s.wait(t).Since; got != since {
		t.Errorf("Since changed from %d to %d", since, got)
	}
}

func TestPark_Untimed_ClockStartsWithARequeue(t *testing.T) {
	var tab parking.Table
	ks := keys(t, 2)
	untimed := parking.Options{Untimed: true}
	s := sleep(&tab, ks[0], untimed)
	time.Sleep(time.Millisecond)
	tab.Waiters(func(w parking.WaiterInfo) bool {
		if w.Waited != 0 {
			t.Errorf("%+v; want no time", w)
		}
		return true
	})
	if r := tab.UnparkAll(ks[0], nil); r.Unparked != 1 || r.Since != 0 {
		t.Errorf("%+v; want one woken, and no time", r)
	}
	if since := s.wait(t).Since; since != 0 {
		t.Errorf("began at %d; want 0", since)
	}

	s = sleep(&tab, ks[0], untimed)
	tab.UnparkRequeue(ks[0], ks[1], func(int) parking.RequeueOp { return parking.RequeueAll }, nil)
	since := tab.UnparkOne(ks[1], nil).Since
	if since == 0 || s.wait(t).Since != since {
		t.Error("the beginning of a wait that was moved is not known")
	}
}

func TestKeys_OfOneAddress_DifferByNode(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	other := k
	other.Node = 1
	a, b := sleep(&tab, k, parking.Options{}), sleep(&tab, other, parking.Options{})
	audit(t, &tab, 2)
	if r := tab.UnparkAll(other, nil); r.Unparked != 1 {
		t.Fatalf("%+v", r)
	}
	b.wait(t)
	if !a.asleep() {
		t.Fatal("the other node's waiter was woken")
	}
	tab.UnparkAll(k, nil)
	a.wait(t)
}

func TestTables_DoNotMeet_AlsoInTheGlobalHash(t *testing.T) {
	var a, b parking.Table
	k := keys(t, 1)[0]
	for _, tab := range []*parking.Table{&a, &b} {
		if err := tab.SetSlots(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	sa, sb := sleep(&a, k, parking.Options{}), sleep(&b, k, parking.Options{})
	if r := a.UnparkAll(k, nil); r.Unparked != 1 || r.More {
		t.Fatalf("%+v", r)
	}
	sa.wait(t)
	if !sb.asleep() {
		t.Fatal("another table's waiter was woken")
	}
	b.UnparkAll(k, nil)
	sb.wait(t)
}

func TestBadKeys_ManyAddressesInOneBucket_AllAreFound(t *testing.T) {
	tab := parking.BadTable()
	if err := tab.SetSlots(2, 0); err != nil {
		t.Fatal(err)
	}
	const n = 200
	ks := keys(t, n)
	all := make([]*sleeper, n)
	for i := range all {
		all[i] = sleep(tab, ks[i], parking.Options{})
	}
	audit(t, tab, n)
	for i := range all {
		j := i * 77 % n
		if r := tab.UnparkOne(ks[j], nil); r.Unparked != 1 || r.More {
			t.Fatalf("address %d: %+v", j, r)
		}
		all[j].wait(t)
		audit(t, tab, n-i-1)
	}
}

func TestOutcome_String(t *testing.T) {
	for o, want := range map[parking.Outcome]string{parking.Unparked: "unparked", parking.Invalid: "invalid",
		parking.TimedOut: "timed out", parking.Canceled: "canceled", 9: "unknown"} {
		if got := o.String(); got != want {
			t.Errorf("outcome %d is %q, not %q", o, got, want)
		}
	}
}

// A goroutine that waits on one bucket must not be in the way of another bucket
// (I17).
func TestBucketHeld_OthersGoOn(t *testing.T) {
	var tab parking.Table
	if err := tab.SetSlots(64, 0); err != nil {
		t.Fatal(err)
	}
	ks := keys(t, 64)
	elsewhere := slices.IndexFunc(ks, func(k parking.Key) bool { return !tab.SameBucket(ks[0], k) })
	if elsewhere < 0 {
		t.Fatal("64 addresses in one bucket of 64")
	}
	other := ks[elsewhere]
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("the holder of a bucket is pinned: needs a second P")
	}
	done := make(chan bool)
	go func() {
		s := sleep(&tab, other, parking.Options{})
		tab.UnparkOne(other, nil)
		<-s.done
		done <- true
	}()
	time.Sleep(time.Millisecond)
	locktest.KeepWorldRunning(t)
	unlock := tab.LockBucket(ks[0])
	finished := false
	for end := time.Now().Add(patience); !finished && time.Now().Before(end); {
		select {
		case <-done:
			finished = true
		default:
		}
	}
	unlock()
	if !finished {
		t.Error("an operation on another bucket did not finish")
	}
}
