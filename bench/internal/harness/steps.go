package harness

import (
	"runtime"
	"slices"
	"time"
)

// Steps runs n steps of one dependent xorshift64 from x and returns the last value: work that cannot be shortened,
// vectorised or overlapped, and that touches no memory. Work inside and outside a critical section is counted in it.
// Algorithm: Marsaglia, "Xorshift RNGs", 2003.
func Steps(x uint64, n int) uint64 {
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// Seed returns a start value for worker id, not 0 since xorshift would stay there.
func Seed(id int) uint64 { return uint64(id)*0x9e3779b97f4a7c15 | 1 }

// StepTime measures the time of one step in nanoseconds: the median of some short runs.
func StepTime() float64 {
	const steps, runs = 200_000, 21
	times := make([]float64, runs)
	for i := range times {
		start := time.Now()
		last := Steps(Seed(i), steps)
		times[i] = float64(time.Since(start).Nanoseconds()) / steps
		runtime.KeepAlive(last)
	}
	slices.Sort(times)
	return times[runs/2]
}
