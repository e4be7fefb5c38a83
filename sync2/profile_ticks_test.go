//go:build !sync2_std

package sync2

import (
	"math"
	"testing"
)

// A goroutine that measures the rate of cputicks may lose its processor at any time. What it finds is used for as long as the
// process lives.
func TestMeasureTicks_Interrupted(t *testing.T) {
	const (
		perNs  = 2.6
		look   = 20        // ns that it takes to read a clock
		absent = 8_000_000 // ns
	)
	for _, c := range []struct {
		name string
		lost func(look int) bool // whether the processor is lost before a look at a clock; each reading takes three
	}{
		{"Never", func(int) bool { return false }},
		{"BeforeTicksOfTheFirst", func(n int) bool { return n == 1 }},
		{"AfterTicksOfTheFirst", func(n int) bool { return n == 2 }},
		{"BetweenReadings", func(n int) bool { return n == 3 }},
		{"BeforeTicksOfEverySecond", func(n int) bool { return n%6 == 1 }},
		{"AfterTicksOfNineInTen", func(n int) bool { return n%3 == 2 && n%30 != 14 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, looks := int64(1_000_000), 0
			clock := func() int64 {
				if now += look; c.lost(looks) {
					now += absent
				}
				looks++
				return now
			}
			rate := measureTicks(func() reading {
				return reading{before: clock(), ticks: int64(perNs * float64(clock())), after: clock()}
			})
			if got := float64(rate) / rateUnit; math.Abs(got/perNs-1) > 0.02 {
				t.Errorf("%.3f ticks for each ns, want %v", got, perNs)
			}
		})
	}
}
