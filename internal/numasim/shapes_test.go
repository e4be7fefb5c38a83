//go:build sim

package numasim

import (
	"math"
	"testing"
)

// measured returns what a lock comes to, logging it.
func measured(t *testing.T, m Machine, lock string, threads int, effort Effort) Outcome {
	t.Helper()
	o, err := Measure(m, lock, threads, effort)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s, %d threads: %.0f ns, fairness %.2f, %.2f handed over in the domain, %.2f to another",
		m.Name, lock, threads, o.PerOp, o.TopHalf, o.Local, o.Remote)
	return o
}

func machine(t *testing.T, name string) Machine {
	t.Helper()
	m, err := MachineNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A model that does not show what is known of well-known locks would be believed nothing else.
func TestShape_TASCollapses(t *testing.T) {
	m := machine(t, "haswell4")
	few, many := measured(t, m, "tas", 2, Quick), measured(t, m, "tas", 36, Quick)
	if many.PerOp < 3*few.PerOp {
		t.Errorf("%.0f ns with 2 threads, %.0f with 36: no collapse", few.PerOp, many.PerOp)
	}
}

// Without the long holds, which depend on the number of threads, a queue costs the same for 8 threads and for all.
func TestShape_MCSIsFlat(t *testing.T) {
	m := machine(t, "haswell4")
	own := func(threads int) float64 {
		return measured(t, m, "mcs", threads, Effort{Places: 8, Ops: 8000}).PerOp - float64(longHolds/ns)/float64(threads)
	}
	lo, hi := math.Inf(1), 0.0
	for _, n := range []int{8, 16, 72, 142} {
		x := own(n)
		lo, hi = min(lo, x), max(hi, x)
	}
	if hi > 1.15*lo {
		t.Errorf("%.0f to %.0f ns from 8 threads on: not within 15 %%", lo, hi)
	}
}

// The authors of CNA report 1.36, 1.53, 1.61 and 1.64 for 8, 16, 72 and 142 threads.
func TestShape_CNAGainsFrom8ThreadsOn(t *testing.T) {
	m := machine(t, "haswell4")
	counts := map[int][2]float64{2: {0.97, 1.03}, 8: {1.25, 1.5}, 72: {1.4, 1.75}}
	if !testing.Short() {
		counts[1], counts[4], counts[16], counts[142] = [2]float64{0.97, 1.03}, [2]float64{0.97, 1.03}, [2]float64{1.4, 1.75}, [2]float64{1.4, 1.75}
	}
	effort := Effort{Places: 8, Ops: 20_000}
	for n, want := range counts {
		ratio := measured(t, m, Baseline, n, effort).PerOp / measured(t, m, "cna", n, effort).PerOp
		if ratio < want[0] || ratio > want[1] {
			t.Errorf("%d threads: %.2f times qspinlock, want %.2f to %.2f", n, ratio, want[0], want[1])
		}
	}
}

// hqkernel beside the published table. The cells that are not within bounds here are printed by the benchmark with the
// others.
func TestPublished_Genoa(t *testing.T) {
	counts := []int{64, 384}
	if !testing.Short() {
		counts = []int{64, 128, 256, 384}
	}
	bounds := map[string]float64{"epyc9654-nps12": 20, "epyc9654-nps4": 25}
	for _, n := range counts {
		base := measured(t, machine(t, "epyc9654-nps12"), Baseline, n, Quick) // the same hardware at every NPS
		last := math.Inf(-1)
		for _, name := range []string{"epyc9654-nps1", "epyc9654-nps2", "epyc9654-nps4", "epyc9654-nps12"} {
			gain := measured(t, machine(t, name), "hqkernel", n, Quick).Gain(base)
			compare(t, name, n, gain, bounds[name])
			if gain <= last {
				t.Errorf("%s, %d threads: %+.0f %%, no more than with larger domains, %+.0f %%", name, n, gain, last)
			}
			last = gain
		}
	}
}

func TestPublished_Kunpeng(t *testing.T) {
	counts := []int{16, 96}
	if !testing.Short() {
		counts = []int{16, 32, 64, 96}
	}
	m := machine(t, "kunpeng920")
	effort := Effort{Places: 6, Ops: 25_000}
	for _, n := range counts {
		base := measured(t, m, Baseline, n, effort)
		compare(t, m.Name, n, measured(t, m, "hqkernel", n, effort).Gain(base), 25)
	}
}

// With domains found by the lock itself, NPS 1 gains what NPS 12 gains: nearly by construction, since nothing else differs.
func TestLLCDomains_GainWhatNPS12Gains(t *testing.T) {
	const n = 64
	base := measured(t, machine(t, "epyc9654-nps1"), Baseline, n, Quick)
	nps12 := measured(t, machine(t, "epyc9654-nps12"), "hqkernel", n, Quick).Gain(base)
	llc := measured(t, machine(t, "epyc9654-nps1-llc"), "hqkernel", n, Quick).Gain(base)
	if math.Abs(llc-nps12) > 5 {
		t.Errorf("%+.0f %%, with NPS 12 %+.0f %%", llc, nps12)
	}
}

// A lock that may become hierarchical costs few threads nothing.
func TestOurs_FewThreadsLoseNothing(t *testing.T) {
	for _, name := range []string{"epyc9654-nps12", "epyc9654-nps1-llc", "kunpeng920", "haswell4", "cascadelake"} {
		m := machine(t, name)
		for _, n := range []int{1, 2, 4, 7} {
			base, ours := measured(t, m, Baseline, n, Quick), measured(t, m, Ours, n, Quick)
			if gain := ours.Gain(base); gain < -3 {
				t.Errorf("%s, %d threads: %+.0f %%, want -3 %% or more", name, n, gain)
			}
		}
	}
}

// Whoever waits is let in before long, also past an owner who has the lock's cache line. Where more is missing than these
// bounds say, the benchmark prints it with the reason.
func TestOurs_Fairness(t *testing.T) {
	counts := []int{2, 8}
	if !testing.Short() {
		counts = []int{2, 4, 8, 16}
	}
	for name, bound := range map[string]float64{"epyc9654-nps12": 0.62, "cascadelake": 0.62, "haswell4": 0.75, "kunpeng920": 0.75} {
		for _, n := range counts {
			if o := measured(t, machine(t, name), Ours, n, Quick); o.TopHalf > bound {
				t.Errorf("%s, %d threads: the luckier half has %.2f, want at most %.2f", name, n, o.TopHalf, bound)
			}
		}
	}
}

// Waiters that have to sleep are called one after the other: all at once they would be in each other's way, and late again.
func TestOurs_ManyThreadsGain(t *testing.T) {
	bounds := map[string]float64{"kunpeng920": 40}
	if !testing.Short() {
		bounds["haswell4"], bounds["epyc9654-nps12"] = 20, 20
	}
	for name, bound := range bounds {
		m := machine(t, name)
		base, ours := measured(t, m, Baseline, 64, Quick), measured(t, m, Ours, 64, Quick)
		if gain := ours.Gain(base); gain < bound {
			t.Errorf("%s, 64 threads: %+.0f %%, want %+.0f %% or more", name, gain, bound)
		}
	}
}

// compare fails if the gain is further than bound from the published one; 0: whatever it is.
func compare(t *testing.T, machine string, threads int, gain, bound float64) {
	t.Helper()
	for _, p := range PublishedFor(machine) {
		if p.Threads == threads {
			off := gain - p.Gain
			t.Logf("%s, %d threads: %+.0f %%, published %+.0f %%, off by %+.0f", machine, threads, gain, p.Gain, off)
			if bound > 0 && math.Abs(off) > bound {
				t.Errorf("%s, %d threads: off by %+.0f points, want within %.0f", machine, threads, off, bound)
			}
		}
	}
}
