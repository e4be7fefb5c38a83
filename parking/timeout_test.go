package parking_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

func TestTimeout_Expires_LeavesTheQueue(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	before := sleep(&tab, k, parking.Options{})
	begin := time.Now()
	var key parking.Key
	last := true
	r := tab.Park(k, nil, nil, func(k parking.Key, l bool) { key, last = k, l },
		&parking.Options{Deadline: begin.Add(5 * time.Millisecond)})
	if r.Outcome != parking.TimedOut || r.Token != 0 || r.More {
		t.Fatalf("%+v", r)
	}
	if d := time.Since(begin); d < 5*time.Millisecond {
		t.Errorf("timed out after %v of 5ms", d)
	}
	if key != k || last {
		t.Errorf("timedOut was told %v, last %v", key, last)
	}
	audit(t, &tab, 1)
	tab.UnparkOne(k, nil)
	before.wait(t)

	tab.Park(k, nil, nil, func(_ parking.Key, l bool) { last = l }, &parking.Options{Deadline: time.Now().Add(time.Millisecond)})
	if !last {
		t.Error("the only waiter was not the last")
	}
	audit(t, &tab, 0)
}

func TestTimeout_DeadlineShapes(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		d    time.Time
	}{
		{"a second ago", now.Add(-time.Second)},
		{"1970", time.Unix(0, 0)},
		{"year 1", time.Time{}.Add(1)},
		{"smallest", time.Unix(math.MinInt64/2, 0)},
		{"wall clock only, past", now.Add(-time.Hour).Round(0)},
		{"wall clock only", now.Add(3 * time.Millisecond).Round(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tab parking.Table
			k := keys(t, 1)[0]
			if r := tab.Park(k, func() bool { return false }, nil, nil, &parking.Options{Deadline: c.d}); r.Outcome != parking.Invalid {
				t.Errorf("validation failed: %+v", r)
			}
			within(t, patience, func() {
				if r := tab.Park(k, nil, nil, nil, &parking.Options{Deadline: c.d}); r.Outcome != parking.TimedOut {
					t.Errorf("%+v", r)
				}
			})
			audit(t, &tab, 0)
		})
	}
	for _, d := range []time.Time{now.Add(math.MaxInt64), time.Unix(math.MaxInt64/2, 0), now.Add(time.Hour).Round(0)} {
		var tab parking.Table
		k := keys(t, 1)[0]
		s := sleep(&tab, k, parking.Options{Deadline: d})
		tab.UnparkOne(k, nil)
		if r := s.wait(t); r.Outcome != parking.Unparked {
			t.Errorf("deadline %v: %+v", d, r)
		}
	}
}

func TestCancel_Outcomes(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	ended := canceled()
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name string
		opts parking.Options
		want parking.Outcome
	}{
		{"ended before", parking.Options{Context: ended}, parking.Canceled},
		{"ended before, deadline far", parking.Options{Context: ended, Deadline: future}, parking.Canceled},
		{"ended before, deadline passed", parking.Options{Context: ended, Deadline: past}, parking.TimedOut},
		{"deadline passed", parking.Options{Context: context.Background(), Deadline: past}, parking.TimedOut},
	} {
		if r := tab.Park(k, func() bool { return false }, nil, nil, &c.opts); r.Outcome != parking.Invalid {
			t.Errorf("%s, validation fails: %+v", c.name, r)
		}
		if r := tab.Park(k, nil, nil, nil, &c.opts); r.Outcome != c.want {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := sleep(&tab, k, parking.Options{Context: ctx, Deadline: future})
	time.Sleep(time.Millisecond)
	cancel()
	if r := s.wait(t); r.Outcome != parking.Canceled {
		t.Errorf("ended while parked: %+v", r)
	}
	audit(t, &tab, 0)
}

func TestTimeout_AfterARequeue_TellsTheKeyItWasOn(t *testing.T) {
	tables(t, func(t *testing.T, tab *parking.Table) {
		ks := keys(t, 2)
		ctx, cancel := context.WithCancel(context.Background())
		var key parking.Key
		var last bool
		done := make(chan parking.Result)
		queued := make(chan bool)
		go func() {
			done <- tab.Park(ks[0], nil, func() { close(queued) }, func(k parking.Key, l bool) { key, last = k, l },
				&parking.Options{Context: ctx})
		}()
		<-queued
		stays := sleep(tab, ks[0], parking.Options{})
		if r := requeue(tab, ks[0], ks[1], parking.RequeueOne); r.Requeued != 1 {
			t.Fatalf("%+v", r)
		}
		cancel()
		if r := <-done; r.Outcome != parking.Canceled {
			t.Fatalf("%+v", r)
		}
		if key != ks[1] || !last {
			t.Errorf("timedOut was told %v, last %v", key, last)
		}
		audit(t, tab, 1)
		tab.UnparkOne(ks[0], nil)
		stays.wait(t)
	})
}

// Either the waker chose the waiter and it says so, or it left and the waker
// found nobody: never both, never neither.
func TestTimeoutRacesUnpark_NeverBothReported(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	rng := rand.New(rand.NewPCG(seed(t), 1))
	both := [2]int{}
	for range effort(t, 5000) {
		ctx, cancel := context.WithCancel(context.Background())
		opts := parking.Options{Deadline: time.Now().Add(time.Duration(rng.IntN(40)) * time.Microsecond)}
		if rng.IntN(2) == 0 {
			opts = parking.Options{Context: ctx}
		}
		s := sleep(&tab, k, opts)
		for range rng.IntN(800) {
			_ = time.Now()
		}
		if opts.Context != nil {
			go cancel()
		}
		woken := tab.UnparkOne(k, nil).Unparked
		if got := s.wait(t).Outcome == parking.Unparked; got != (woken == 1) {
			t.Fatalf("woken %d, the waiter says unparked: %v", woken, got)
		}
		cancel()
		both[woken]++
	}
	t.Logf("%d ended by their limit, %d woken", both[0], both[1])
	audit(t, &tab, 0)
}

// A requeue storm against tiny timeouts must end: a requeuer may not wait for a
// waiter that is about to leave.
func TestRequeueStormAgainstTimeouts_Terminates(t *testing.T) {
	tables(t, func(t *testing.T, tab *parking.Table) {
		ks := keys(t, 3)
		rounds := effort(t, 2000)
		within(t, patience, func() {
			concurrently(6, func(i int) {
				for j := range rounds {
					if i < 4 {
						tab.Park(ks[i%3], nil, nil, nil, &parking.Options{Deadline: time.Now().Add(time.Duration(j%3) * time.Microsecond)})
					} else {
						requeue(tab, ks[j%3], ks[(j+i)%3], parking.RequeueAll)
					}
				}
			})
		})
		audit(t, tab, 0)
	})
}
