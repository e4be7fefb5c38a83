//go:build gc && !purego && !race && !sim

package asm

import (
	"testing"

	"github.com/hqsync/hqsync/internal/rt"
)

// clocks is a pair of clocks that the test moves: each reading takes step.
type clocks struct {
	now      reading
	step     reading
	readings int
}

func (c *clocks) read() reading {
	c.readings++
	c.now.ticks += c.step.ticks
	c.now.nanos += c.step.nanos
	return c.now
}

func TestCalibrationSettles(t *testing.T) {
	var c calibration
	clock := clocks{step: reading{2400 * 2, 2_000}} // 2.4 GHz, 2 µs a reading
	if got := c.get(clock.read); got != 2400 {
		t.Errorf("first call: %d ticks per µs, want 2400", got)
	}
	if span := int64(clock.readings-1) * 2_000; span < roughSpan || span > 2*roughSpan {
		t.Errorf("the first call measured for %d ns, want %d", span, roughSpan)
	}
	taken := clock.readings
	if got := c.get(clock.read); got != 2400 || clock.readings != taken+1 {
		t.Errorf("second call: %d after %d readings, want 2400 after 1", got, clock.readings-taken)
	}
	// A later call sees the more exact rate of the long span, and keeps it.
	clock.step = reading{2401 * 10_000, settleSpan}
	if got := c.get(clock.read); got != 2401 {
		t.Errorf("later call: %d ticks per µs, want 2401", got)
	}
	taken = clock.readings
	if got := c.get(clock.read); got != 2401 || clock.readings != taken {
		t.Errorf("after it settled: %d after %d readings, want 2401 after none", got, clock.readings-taken)
	}
}

func TestCalibrationDistrustsItsClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock clocks
		want  uint64
	}{
		{"clock stands still", clocks{step: reading{300, 0}}, nominalRate},
		{"counter stands still", clocks{step: reading{0, 100}}, nominalRate},
		{"counter runs backwards", clocks{now: reading{1 << 40, 0}, step: reading{^uint64(99), 100}}, nominalRate},
		{"slower than 1 MHz", clocks{step: reading{1, 100_000}}, nominalRate},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cal calibration
			for range 3 {
				if got := cal.get(c.clock.read); got != c.want {
					t.Errorf("%d ticks per µs, want %d", got, c.want)
				}
			}
			if cal.settled.Load() != 0 || cal.rough.Load() != 0 {
				t.Error("remembered")
			}
		})
	}
	t.Run("clock was set forward after the first call", func(t *testing.T) {
		var cal calibration
		clock := clocks{step: reading{3_000, 1_000}}
		cal.get(clock.read)
		clock.now.nanos += 1 << 60
		if got := cal.get(clock.read); got != 3000 || cal.settled.Load() != 0 {
			t.Errorf("%d ticks per µs, settled %d; want the first 3000 and nothing settled", got, cal.settled.Load())
		}
	})
}

// A clock that moves in steps, as the runtime's does on Windows: from one step to
// the next many readings are equal, and two may be a whole step apart that are not
// a microsecond apart.
func TestCalibration_ClockOfCoarseSteps(t *testing.T) {
	if !rt.Pinnable {
		t.Skip("this toolchain has the portable clock only, which the rate of a long span is not taken from")
	}
	const rate, effort = 3000, 100 // ticks per µs; ns that a reading takes
	for _, step := range []int64{100_000, 500_000, 1_000_000, 15_625_000} {
		for start := range int64(100) {
			var cal calibration
			real := start * step / 100
			read := func() reading {
				real += effort
				return reading{uint64(real) * rate / 1000, real / step * step}
			}
			for range 3 {
				if got := cal.get(read); got != nominalRate {
					t.Fatalf("steps of %d ns, from %d: %d ticks per µs at first, want %d", step, start*step/100, got, nominalRate)
				}
			}
			for range 3 {
				real += coarseSpan
				cal.get(read)
			}
			if got := cal.get(read); got < rate*98/100 || got > rate*102/100 {
				t.Fatalf("steps of %d ns, from %d: %d ticks per µs in the end, want %d", step, start*step/100, got, rate)
			}
		}
	}
}
