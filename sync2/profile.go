//go:build !sync2_std

package sync2

import "github.com/hqsync/hqsync/internal/rt"

// blocked adds a wait that began at cputicks since to the block profile. skip 0
// puts the caller on top of the stack.
func blocked(since int64, skip int) { rt.BlockEvent(cputicks()-since, skip+1) }

// charge adds a parking.UnparkResult's Delay to the mutex profile, on the
// account of the goroutine that unlocks. skip is as in blocked.
func charge(delay int64, skip int) {
	if rt.MutexProfiled && delay > 0 {
		rt.MutexEvent(ticksOf(delay), skip+1)
	}
}

// ticksOf converts nanoseconds to the unit of cputicks. The first call measures
// the rate for 20 microseconds or a little more.
func ticksOf(ns int64) int64 {
	rate := ticksRate.Load()
	if rate == 0 {
		rate = measureTicks(readClocks)
		ticksRate.CompareAndSwap(0, rate)
	}
	return int64(float64(ns) * float64(rate) / rateUnit)
}

const rateUnit = 1 << 10

// ticksRate is cputicks for each nanosecond, times rateUnit; 0 = not known yet.
var ticksRate atomicUint64

// A reading says that cputicks were ticks at some time between two of nanotime.
type reading struct{ before, ticks, after int64 }

func readClocks() reading { return reading{rt.Nanotime(), cputicks(), rt.Nanotime()} }

func (r reading) width() int64 { return r.after - r.before }

// measureTicks returns cputicks for each nanosecond, times rateUnit. The goroutine
// may be interrupted at any time, for longer than the measurement takes: readings
// between whose two times much happened do not count, unless there are no others.
func measureTicks(read func() reading) (rate uint64) {
	const (
		least    = 20_000 // ns: the clock may be coarse
		exact    = 50     // times the widths of both readings make an error of at most 2 %
		readings = 10_000
	)
	first := read()
	for range readings {
		r := read()
		elapsed := r.before - first.after
		switch {
		case elapsed >= max(least, exact*(first.width()+r.width())):
			return rateBetween(first, r)
		case r.width() < first.width()/2:
			first = r
		}
	}
	return rateBetween(first, read())
}

func rateBetween(a, b reading) uint64 {
	elapsed := (b.before+b.after)/2 - (a.before+a.after)/2
	return uint64(max(1, (b.ticks-a.ticks)*rateUnit/max(1, elapsed)))
}
