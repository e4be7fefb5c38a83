//go:build gc && !purego && !race && !sim

package asm

import (
	"math"
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/rt"
)

const (
	roughSpan  = 20_000     // ns that the first call measures for
	roughSteps = 4          // times that the clock has to move meanwhile
	settleSpan = 10_000_000 // ns since the first call after which the rate is final
	// coarseSpan is settleSpan for a clock that moves in coarse steps, of 16 ms at
	// most.
	coarseSpan = 1_000_000_000
	// nominalRate stands in while the clock does not move (the portable clock
	// inside a synctest bubble), or too rarely; it is never remembered.
	nominalRate = 1000
	maximumRate = 100_000
)

// ticksPerMicrosecond is measured. CPUID has leaves that give the rate, but
// AMD's CPUs and most hypervisors leave them empty.
func ticksPerMicrosecond() uint64 { return rate.get(readClocks) }

var rate calibration

// reading is one instant on both clocks.
type reading struct {
	ticks uint64
	nanos int64
}

// readClocks takes the tightest of three readings: between two of the three
// instructions the thread may lose its CPU.
func readClocks() reading {
	var best reading
	narrowest := uint64(math.MaxUint64)
	for range 3 {
		before := ticks()
		nanos := rt.Nanotime()
		width := ticks() - before
		if width < narrowest {
			narrowest = width
			best = reading{before + width/2, nanos}
		}
	}
	return best
}

// calibration finds the rate of the ticks. Callers that come at the same time
// each measure for themselves; nobody waits for another, since a caller may be
// pinned.
type calibration struct {
	settled atomic.Uint64 // final rate, or 0
	rough   atomic.Uint64 // rate of the first measurement, or 0
	origin  struct {      // the first reading
		state atomic.Uint32 // originNone -> originClaimed -> originSet
		reading
	}
}

const (
	originNone    = iota
	originClaimed // one caller, who writes the reading
	originSet     // the reading is immutable
)

func (c *calibration) get(read func() reading) uint64 {
	if r := c.settled.Load(); r != 0 {
		return r
	}
	return c.measure(read)
}

func (c *calibration) measure(read func() reading) uint64 {
	now := read()
	if c.origin.state.CompareAndSwap(originNone, originClaimed) {
		c.origin.reading = now
		c.origin.state.Store(originSet)
	}
	rough := c.rough.Load()
	if rough == 0 {
		return c.measureFirst(read, now)
	}
	// A long span that contradicts the short one did not measure the same clock.
	r := c.sinceOrigin(now, settleSpan)
	if r == 0 || r < rough/2 || r > rough*2 {
		return rough
	}
	c.settled.Store(r)
	return r
}

// measureFirst is measure while there is no rate of a short span: at first, and for
// as long as the clock does not allow one.
func (c *calibration) measureFirst(read func() reading, now reading) uint64 {
	if rt.Pinnable { // else a clock that has stood still may be of a synctest bubble, where it jumps
		if r := c.sinceOrigin(now, coarseSpan); r != 0 {
			c.settled.Store(r)
			return r
		}
	}
	rough := spanRate(read, now)
	if rough == 0 {
		return nominalRate
	}
	c.rough.Store(rough)
	return rough
}

// sinceOrigin returns the rate since the first reading, or 0 if that was less than
// span ns ago.
func (c *calibration) sinceOrigin(now reading, span int64) uint64 {
	if c.origin.state.Load() != originSet || now.nanos-c.origin.nanos < span {
		return 0
	}
	return rateBetween(c.origin.reading, now)
}

// spanRate measures for roughSpan from the reading from. It returns 0 if the clock
// stands still, or moves in steps so coarse (on Windows, of a millisecond or more)
// that it shows less than roughSteps of them.
func spanRate(read func() reading, from reading) uint64 {
	steps, last := 0, from.nanos
	for range 1000 {
		to := read()
		if to.nanos != last {
			steps++
		}
		last = to.nanos
		if steps >= roughSteps && to.nanos-from.nanos >= roughSpan {
			return rateBetween(from, to)
		}
	}
	return 0
}

// rateBetween returns the ticks per microsecond between two readings, or 0 if
// no counter of time can have that rate.
func rateBetween(from, to reading) uint64 {
	r := math.Round(float64(int64(to.ticks-from.ticks)) / float64(to.nanos-from.nanos) * 1000)
	if !(r >= 1 && r <= maximumRate) {
		return 0
	}
	return uint64(r)
}
