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
// the rate for 20 microseconds.
func ticksOf(ns int64) int64 {
	rate := ticksRate.Load()
	if rate == 0 {
		begin, ticks := rt.Nanotime(), cputicks()
		end := begin
		for end-begin < 20_000 {
			end = rt.Nanotime()
		}
		rate = uint64(max(1, (cputicks()-ticks)*rateUnit/(end-begin)))
		ticksRate.CompareAndSwap(0, rate)
	}
	return int64(float64(ns) * float64(rate) / rateUnit)
}

const rateUnit = 1 << 10

// ticksRate is cputicks for each nanosecond, times rateUnit; 0 = not known yet.
var ticksRate atomicUint64
