package parking_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// Records are reused at once. A timer or context of a wait that is over must
// not end, or even disturb, the next wait of the same record: that one has no
// limit and is woken exactly by its waker (JDK-8369227 was such a mistake).
func TestP24_OldTimer_DoesNotTouchTheNextWaitOfTheRecord(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one cache of records
	var tab parking.Table
	k := keys(t, 1)[0]
	for i := range effort(t, 2000) {
		ctx, cancel := context.WithCancel(context.Background())
		opts := parking.Options{Deadline: time.Now().Add(time.Duration(i%60) * time.Microsecond)}
		if i%2 == 0 {
			opts.Context = ctx
		}
		first := sleep(&tab, k, opts)
		go cancel()
		tab.UnparkOne(k, nil)
		if r := first.wait(t).Outcome; r == parking.Invalid {
			t.Fatal(r)
		}
		second := sleep(&tab, k, parking.Options{})
		cancel()
		runtime.Gosched()
		if !second.asleep() {
			t.Fatalf("round %d: the second wait ended by itself: %+v", i, second.result)
		}
		if r := tab.UnparkOne(k, nil); r.Unparked != 1 {
			t.Fatalf("round %d: the second wait was gone", i)
		}
		if r := second.wait(t); r.Outcome != parking.Unparked {
			t.Fatalf("%+v", r)
		}
	}
}

// The same without luck: the alarm of the first wait is rung by hand during the
// second.
func TestStaleAlarm_Misses(t *testing.T) {
	r := parking.NewRecord(new(parking.Table), keys(t, 1)[0])
	stale := r.Alarm()
	r.EndWait()
	r.BeginWait()
	stale()
	undisturbed := make(chan bool)
	go func() { undisturbed <- r.Sleep() }()
	select {
	case <-undisturbed:
		t.Fatal("the alarm of an earlier wait reached the next one")
	case <-time.After(10 * time.Millisecond):
	}
	r.Wake()
	if !<-undisturbed {
		t.Fatal("the alarm of an earlier wait reached the next one")
	}

	r.BeginWait()
	r.Alarm()()
	if r.Sleep() {
		t.Fatal("the alarm of this wait did not reach it")
	}
	r.EndWait()
}
