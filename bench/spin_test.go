package main

import (
	"context"
	"math"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/locks"
	"github.com/hqsync/hqsync/internal/rt"
)

// A small run fills every cell, and the sheets have as many cells as columns.
func TestSpin_EveryLockInEveryScene(t *testing.T) {
	if !rt.Pinnable {
		t.Skip("this build cannot pin goroutines")
	}
	names, err := (&spinCmd{}).names()
	if err != nil || len(names) != len(locks.Kinds)+1 {
		t.Fatalf("names %q, %v", names, err)
	}
	r := &spinRun{
		plan: plan{rounds: 1, duration: shortest}, names: names, times: map[string][][]float64{}, tops: map[string]float64{},
		scenes: []spinScene{{"alone", 1, 0, true, workPair{}}, {"2 Ps", 2, 2, true, workPair{20, 20}},
			{"pinned", 3, 3, true, workPair{20, 20}}, {"not pinned", 3, 2, false, workPair{20, 20}}},
	}
	for _, name := range names {
		r.times[name] = make([][]float64, len(r.scenes))
	}
	if err := r.measure(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for i, s := range r.scenes {
			if times := r.times[name][i]; len(times) != 1 || times[0] <= 0 {
				t.Errorf("%s, %s: %v", name, s.name, times)
			}
		}
	}
	targets, _ := r.targets()
	for _, sheet := range []result.Sheet{r.table(), targets} {
		for _, row := range sheet.Rows {
			if len(row) != len(sheet.Columns) {
				t.Errorf("%s: %d cells in %d columns: %q", sheet.Name, len(row), len(sheet.Columns), row)
			}
		}
	}
	if budget := hq.CurrentTunables().Budget; r.bare < budget {
		t.Errorf("the longest wait for nothing took %v, less than its budget of %v", r.bare, budget)
	}
	if without, with := pooled(r.stops[0]), pooled(r.stops[1]); without.total == 0 || with.total == 0 {
		t.Error("the world was never stopped")
	}
}

func TestSpin_OnlyTargetedLocksAreMeasuredOftenWhereTheyCollapse(t *testing.T) {
	r := &spinRun{}
	for _, c := range []struct {
		name         string
		scene, round int
		want         bool
	}{
		{"ticket", sceneTwo, 9, true}, {"ticket", scenePinned, 0, true}, {"ticket", scenePinned, 1, false},
		{spinHQ, scenePinned, 5, true}, {spinMCS, scenePinned, 6, false}, {spinHQ, sceneLoose, 1, false},
	} {
		if got := r.sampled(c.name, c.scene, c.round); got != c.want {
			t.Errorf("sampled(%s, %d, %d) = %t", c.name, c.scene, c.round, got)
		}
	}
}

// TestSpin_Interrupted_ShowsWhatThereIs: what was not measured is left blank, and not shown as 0.
func TestSpin_Interrupted_ShowsWhatThereIs(t *testing.T) {
	r := &spinRun{names: []string{spinHQ, spinMCS}, scenes: spinScenes(), tops: map[string]float64{spinMCS: 0.5}, times: map[string][][]float64{
		spinHQ: {{3}, nil, {7}, nil}, spinMCS: {nil, {2, 4}, {6, 12}, nil},
	}}
	want := [][]string{{spinHQ, "3.0", "", "7.0", "", "", ""}, {spinMCS, "", "3.0", "9.0", "", "0.333x", "0.50"}}
	if got := r.table().Rows; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSpin_Verdicts(t *testing.T) {
	e := stats.Estimate{Median: 1.1, Lo: 0.9, Hi: 1.2, N: stats.MinSamples}
	for _, c := range []struct {
		target spinTarget
		want   result.Verdict
	}{
		{spinTarget{value: e, bound: 1.1}, result.Met},
		{spinTarget{value: e, bound: 1}, result.Noise},
		{spinTarget{value: e, bound: 0.8}, result.Missed},
		{spinTarget{value: e, bound: 1.1, atLeast: true}, result.Met},
		{spinTarget{value: e, bound: 1.15, atLeast: true}, result.Noise},
		{spinTarget{value: e, bound: 1.3, atLeast: true}, result.Missed},
		{spinTarget{value: stats.Estimate{Median: 41, N: 1}, bound: 40}, result.Missed},
		{spinTarget{value: e}, ""},
	} {
		if got := c.target.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.target, got, c.want)
		}
	}
}

func TestPauses_P99OfWhatCameBetween(t *testing.T) {
	at := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 1e-6, 1e-5, math.Inf(1)}}
	}
	for _, c := range []struct {
		counts []uint64
		want   float64
	}{
		{[]uint64{98, 2, 0}, 5.5}, // half of the bucket from 1 to 10 us
		{[]uint64{90, 10, 0}, 9.1},
		{[]uint64{100, 0, 0}, 0.99},
		{[]uint64{50, 0, 50}, 10}, // beyond it nothing is known
	} {
		var p pauses
		p.add(at(1000, 5, 7), at(1000+c.counts[0], 5+c.counts[1], 7+c.counts[2]))
		if got := p.p99(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d: p99 %v us, want %v", c.counts, got, c.want)
		}
	}
	var p pauses
	p.add(at(0, 0, 0), at(98, 2, 0))
	p.add(at(98, 2, 0), at(198, 2, 0))
	if got := p.p99(); math.Abs(got-0.99*200/198) > 1e-9 {
		t.Errorf("198 of up to 1 us and 2 of up to 10 us: p99 %v us", got)
	}
}

// The interval is as wide as the rounds differ, and there is none of too few.
func TestLonger_IntervalOverRounds(t *testing.T) {
	round := func(us ...float64) (p pauses) {
		p.most = []float64{1e-6, 1e-5, 1e-4, 1e-3}
		p.counts = make([]uint64, len(p.most))
		for _, x := range us {
			p.counts[slices.IndexFunc(p.most, func(most float64) bool { return x*1e-6 <= most*1.0001 })]++
			p.total++
		}
		return p
	}
	calm, loud := round(10, 10, 10, 10), round(100, 100, 100, 100)
	of := func(n int, p pauses) (rounds []pauses) {
		for range n {
			rounds = append(rounds, p)
		}
		return rounds
	}
	near := func(x, want float64) bool { return math.Abs(x-want) < 6 } // the percentile is not at the end of its bucket
	if e := longer(of(6, calm), of(6, loud)); !near(e.Median, 90) || !near(e.Lo, 90) || !near(e.Hi, 90) || !e.Known() {
		t.Errorf("always 90 us more: %+v", e)
	}
	if e := longer(of(5, calm), of(5, loud)); e.Known() || !near(e.Median, 90) {
		t.Errorf("five rounds: %+v", e)
	}
	once := append(of(5, calm), loud)
	if e := longer(of(6, calm), once); !near(e.Median, 90) || !near(e.Lo, 0) || !near(e.Hi, 90) {
		t.Errorf("90 us more in one round of six: %+v", e)
	}
}

// Both partners of each pair end when the clock does, wherever they are.
func TestPairs_End(t *testing.T) {
	r := &spinRun{plan: plan{rounds: 1, duration: 20 * time.Millisecond}}
	for i := range r.pairs {
		if err := r.hammer(context.Background(), i); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Concat(r.pairs[0], r.pairs[1]); len(got) != 2 {
		t.Errorf("samples %v", got)
	}
}
