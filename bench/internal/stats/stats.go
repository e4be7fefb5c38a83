// Package stats has the few statistics that the benchmark reports.
package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Confidence is the level of every interval.
const Confidence = 0.95

// MinSamples is the smallest number of samples that has an interval at that level: of six, the extremes bound the
// median in all but 2 of 2^6 cases.
const MinSamples = 6

// An Estimate is a median and an interval that holds the true median at least 95 times in a hundred.
type Estimate struct {
	Median float64 `json:"median"`
	// Lo and Hi are meaningful if there are at least MinSamples samples; else both are 0.
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
	// N is the number of samples. Of none, everything is 0.
	N int `json:"n"`
}

// Known reports whether there are enough samples for an interval.
func (e Estimate) Known() bool { return e.N >= MinSamples }

// Holds reports whether x lies in the interval.
func (e Estimate) Holds(x float64) bool { return e.Known() && e.Lo <= x && x <= e.Hi }

// Median estimates the median of what the samples come from. The interval is between two order statistics and assumes
// nothing but independence: not a normal distribution, which lock benchmarks never have, and no equal variance.
func Median(samples []float64) Estimate {
	if len(samples) == 0 {
		return Estimate{}
	}
	sample := benchmath.NewSample(slices.Clone(samples), &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(sample, Confidence)
	e := Estimate{Median: s.Center, N: len(samples)}
	if e.Known() {
		e.Lo, e.Hi = s.Lo, s.Hi
	}
	return e
}

// Ratios returns a[i]/b[i] for the pairs that were measured side by side; a longer slice's rest has no partner. If a value
// of a pair is not above 0 there are no ratios at all: the clock was too coarse, or the system has none. To leave out
// only such pairs would favour those that took long.
func Ratios(a, b []float64) []float64 {
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		if a[i] <= 0 || b[i] <= 0 {
			return nil
		}
		r[i] = a[i] / b[i]
	}
	return r
}

// GeoMean returns the geometric mean, NaN of nothing.
func GeoMean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}

// Jain returns Jain's fairness index of the shares, (sum x)^2 / (n * sum x^2): 1 if all got the same, 1/n if one got
// everything; NaN if nobody got anything.
func Jain(shares []uint64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += float64(x)
		squares += float64(x) * float64(x)
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// TopHalf returns the part of everything that the better-off half got: 0.5 if all got the same, towards 1 the less
// fair; NaN if nobody got anything. Of an odd number the one in the middle counts half.
func TopHalf(shares []uint64) float64 {
	sorted := slices.Sorted(slices.Values(shares))
	var sum, top float64
	for i, x := range sorted {
		sum += float64(x)
		switch twice := 2*i + 1 - len(sorted); {
		case twice > 0:
			top += float64(x)
		case twice == 0:
			top += float64(x) / 2
		}
	}
	return top / sum
}
