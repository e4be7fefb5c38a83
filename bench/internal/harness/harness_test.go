package harness

import (
	"context"
	"errors"
	"runtime/debug"
	"testing"
	"time"
)

// sleeper's operation takes a known time.
func sleeper(d time.Duration, workers int) Job {
	loop := func(_ int, m *Meter) (t Tally) {
		for p := m.Phase(); p != Stopped && t.Ops < m.Limit(); t.Ops += uint64(p & 1) {
			time.Sleep(d)
			p = m.Phase()
		}
		return t
	}
	timed := func(id int, m *Meter, w *Waits) (t Tally) {
		for p := m.Phase(); p != Stopped; t.Ops += uint64(p & 1) {
			start := w.Turn()
			time.Sleep(d)
			wait := w.Waited(start)
			if p = m.Phase(); p != Warming {
				w.Record(wait)
			}
		}
		return t
	}
	return Job{Workers: workers, Loop: loop, Timed: timed}
}

func TestRun_CountsOnlyTheSpan(t *testing.T) {
	gc := debug.SetGCPercent(77)
	defer debug.SetGCPercent(gc)
	rig := new(Rig)
	span := 100 * time.Millisecond
	var s Sample
	for ; s.Ops < 3 && span < 10*time.Second; span *= 2 { // the process may have been off its CPU
		var err error
		s, err = rig.Run(context.Background(), sleeper(5*time.Millisecond, 3), Options{Warmup: 40 * time.Millisecond, Duration: span})
		if err != nil {
			t.Fatal(err)
		}
		// At most 20 each in 100 ms.
		if s.Span < span || s.Busy != s.Span || float64(s.Ops) > 3*(float64(s.Span)/5e6+1) || len(s.Counts) != 3 {
			t.Errorf("%+v: want a span of %v or more with at most 60 operations in 100 ms by 3 workers", s, span)
		}
	}
	if s.Ops < 3 {
		t.Errorf("%+v: want an operation or more of each worker", s)
	}
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("after the run GOGC is %d, want what it was before", now)
	}
}

func TestRun_TimedRecordsEveryWait(t *testing.T) {
	rig := new(Rig)
	for range 2 { // the second run finds the histograms of the first
		s, err := rig.Run(context.Background(), sleeper(2*time.Millisecond, 4), Options{Duration: 60 * time.Millisecond, Timed: true, Turn: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		// Those that end after the stop are recorded, not counted.
		if s.Waits.Count < int64(s.Ops) || s.Waits.Count > int64(s.Ops)+4 {
			t.Errorf("%d waits recorded with %d operations, want at most 4 more", s.Waits.Count, s.Ops)
		}
		if w := s.Waits; w.P50 < 1980*time.Microsecond || w.P50 > w.P99 || w.P99 > w.P999 || w.Max < 2*time.Millisecond || float64(w.P999) > 1.01*float64(w.Max) {
			t.Errorf("waits %+v, want 2 ms or more, in order", w)
		}
	}
}

func TestRun_RefusesTimedWithoutForm(t *testing.T) {
	job := sleeper(time.Millisecond, 1)
	job.Timed = nil
	if _, err := new(Rig).Run(context.Background(), job, Options{Duration: time.Millisecond, Timed: true}); err == nil {
		t.Error("want an error")
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(30*time.Millisecond, cancel)
	start := time.Now()
	_, err := new(Rig).Run(ctx, sleeper(time.Millisecond, 2), Options{Duration: time.Minute})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 30*time.Second {
		t.Errorf("returned %v after %v, want the context's error soon after 30 ms", err, time.Since(start))
	}
}

func TestWait_NamesWorkersThatDoNotComeBack(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	c := muster(2, func(id int) Tally {
		if id == 1 {
			<-never
		}
		return Tally{}
	})
	close(c.gate)
	if err := c.wait(20 * time.Millisecond); err == nil {
		t.Error("a worker that never comes back went unnoticed")
	}
}

func TestRunN_DoesWhatIsAsked(t *testing.T) {
	begun := false
	tally, err := RunN(sleeper(time.Microsecond, 4), 10, func() { begun = true })
	if err != nil || tally.Ops != 12 || !begun {
		t.Errorf("RunN(4 workers, 10) = %d operations, %v, begun %v; want 12, the next number that 4 divides", tally.Ops, err, begun)
	}
}

// TestTurn_EndsLongBeforeTheSchedulers: a worker that never blocks gives way many times within the 10 ms after which the
// scheduler would force it. The best of several rounds counts: a busy machine takes the CPU away.
func TestTurn_EndsLongBeforeTheSchedulers(t *testing.T) {
	turns := 0
	for round := 0; round < 5 && turns < 100; round++ {
		turns = max(turns, turnsWithin(200*time.Millisecond))
	}
	// 20000 on an idle machine, 20 if only the scheduler ended them.
	if turns < 100 {
		t.Errorf("%d turns ended within 200 ms, want about 20000", turns)
	}
	if w := new(Rig).cleanWaits(1, 0)[0]; w.Turn() < 0 || w.turn < int64(time.Hour) {
		t.Errorf("a turn of 0 lasts %d ns, want for ever", w.turn)
	}
}

// turnsWithin counts the turns of 10 us that end in the time.
func turnsWithin(d time.Duration) (turns int) {
	w := new(Rig).cleanWaits(1, 10*time.Microsecond)[0]
	before := w.since
	for start := time.Now(); time.Since(start) < d; {
		if now := w.Turn(); w.since == now && w.since != before {
			turns++
			before = w.since
		}
	}
	return turns
}

func TestSteps_DependOnEachOther(t *testing.T) {
	if Steps(1, 0) != 1 {
		t.Error("no step changes nothing")
	}
	if got, want := Steps(1, 3), Steps(Steps(Steps(1, 1), 1), 1); got != want || got == 1 {
		t.Errorf("three steps give %d, one after another %d", got, want)
	}
	if ns := StepTime(); ns < 0.05 || ns > 1000 {
		t.Errorf("a step takes %v ns, which no machine does", ns)
	}
	for id := range 1000 {
		if Seed(id) == 0 {
			t.Fatalf("Seed(%d) = 0", id)
		}
	}
}
