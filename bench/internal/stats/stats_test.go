package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedian_OfKnownSamples(t *testing.T) {
	for _, test := range []struct {
		samples        []float64
		median, lo, hi float64
		known          bool
	}{
		{[]float64{3}, 3, 0, 0, false},
		{[]float64{5, 1, 2, 4, 3}, 3, 0, 0, false},
		// Of six the extremes: 1-2/2^6 = 0.969. Of five they would hold it in 0.938 only.
		{[]float64{6, 1, 5, 2, 4, 3}, 3.5, 1, 6, true},
		// Of ten the second from either end: 0.979. Of twelve the third: 0.961.
		{[]float64{10, 1, 9, 2, 8, 3, 7, 4, 6, 5}, 5.5, 2, 9, true},
		{[]float64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 6.5, 3, 10, true},
	} {
		before := test.samples[0]
		e := Median(test.samples)
		if e.Median != test.median || e.Lo != test.lo || e.Hi != test.hi || e.Known() != test.known || e.N != len(test.samples) {
			t.Errorf("Median(%v) = %+v, want %v in %v to %v, known %v", test.samples, e, test.median, test.lo, test.hi, test.known)
		}
		if test.samples[0] != before {
			t.Errorf("Median(%v) changed the order of its argument", test.samples)
		}
	}
	if e := Median(nil); e != (Estimate{}) {
		t.Errorf("Median of nothing = %+v, want zero", e)
	}
}

// TestInterval_HoldsTheTruth draws pairs as a noisy machine would: a common, slowly changing factor, skewed noise of
// each sample, and now and then an outlier. The interval of the pairs' ratio must hold the true ratio as often as it
// says.
func TestInterval_HoldsTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func() float64 {
		x := math.Exp(0.1 * rng.NormFloat64())
		if rng.IntN(15) == 0 {
			x *= 3
		}
		return x
	}
	const truth, trials = 0.6, 4000
	for _, n := range []int{6, 10, 12, 30} {
		held := 0
		for range trials {
			var a, b []float64
			machine := 1.0
			for range n {
				machine *= math.Exp(0.05 * rng.NormFloat64())
				a = append(a, truth*machine*noise())
				b = append(b, machine*noise())
			}
			if Median(Ratios(a, b)).Holds(truth) {
				held++
			}
		}
		coverage := float64(held) / trials
		t.Logf("n=%d: %.3f", n, coverage)
		// Four standard errors of 4000 trials at 0.95 are 0.014.
		if coverage < Confidence-0.014 {
			t.Errorf("of %d samples: the interval holds the truth in %.3f of the cases, want %v", n, coverage, Confidence)
		}
		// A coarse order statistic may hold it more often, yet an interval without end would be no use.
		if coverage > 0.995 {
			t.Errorf("of %d samples: the interval holds the truth in %.3f of the cases: too wide to say anything", n, coverage)
		}
	}
}

func TestRatios_PairByPair(t *testing.T) {
	got := Ratios([]float64{1, 4, 9}, []float64{2, 2})
	if len(got) != 2 || got[0] != 0.5 || got[1] != 2 {
		t.Errorf("Ratios = %v, want [0.5 2]", got)
	}
}

// TestRatios_OfNothing: a value that a coarse clock, or none, made 0 has no ratio, and the other pairs alone would be a
// choice of them.
func TestRatios_OfNothing(t *testing.T) {
	for _, pair := range [][2][]float64{{{1, 0}, {2, 2}}, {{1, 2}, {2, 0}}, {{1, 2}, {2, -1}}, {{0}, {0}}} {
		if got := Ratios(pair[0], pair[1]); len(got) != 0 {
			t.Errorf("Ratios(%v, %v) = %v, want none", pair[0], pair[1], got)
		}
	}
}

func TestMeansAndFairness_OfKnownShares(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	near("GeoMean(1,4)", GeoMean([]float64{1, 4}), 2)
	near("Jain of equals", Jain([]uint64{7, 7, 7}), 1)
	near("Jain of one winner", Jain([]uint64{0, 9, 0, 0}), 0.25)
	near("Jain(1,2,3)", Jain([]uint64{1, 2, 3}), 36.0/42)
	near("TopHalf of equals", TopHalf([]uint64{5, 5, 5, 5}), 0.5)
	near("TopHalf of three equals", TopHalf([]uint64{5, 5, 5}), 0.5)
	near("TopHalf of one winner", TopHalf([]uint64{0, 9, 0, 0}), 1)
	near("TopHalf(4,1,3,2)", TopHalf([]uint64{4, 1, 3, 2}), 0.7)
	if !math.IsNaN(GeoMean(nil)) || !math.IsNaN(Jain([]uint64{0, 0})) || !math.IsNaN(TopHalf([]uint64{0, 0})) {
		t.Error("of nothing: want NaN")
	}
}
