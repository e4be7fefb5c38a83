// Package beside is the benchmark helper of package asm and its candidates.
package beside

import (
	"slices"
	"testing"
	"time"
)

// Run times an operation and the form that it would replace in turns, so that
// both meet the same state of the machine, and reports the median turn of each
// and their ratio. Each function repeats its form n times.
func Run(b *testing.B, form string, op, replaced func(n int)) {
	const turns = 21
	block := b.N/turns + 1
	var ours, theirs [turns]float64
	for i := range turns {
		ours[i] = timed(op, block)
		theirs[i] = timed(replaced, block)
	}
	slices.Sort(ours[:])
	slices.Sort(theirs[:])
	o, t := ours[turns/2], theirs[turns/2]
	b.ReportMetric(o, "ns/op")
	b.ReportMetric(t, form+"-ns/op")
	b.ReportMetric(o/t, "ratio")
}

// timed returns the nanoseconds that one of n takes.
func timed(f func(n int), n int) float64 {
	start := time.Now()
	f(n)
	return float64(time.Since(start)) / float64(n)
}
