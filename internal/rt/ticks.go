package rt

import "sync/atomic"

// The first look at both clocks, in slow paths only.
var firstLook atomic.Pointer[[2]int64]

// NanosecondsToTicks converts a duration to the unit of Cputicks. It measures
// the ratio since the process first asked, so the first answers are rough.
func NanosecondsToTicks(ns int64) int64 {
	now := [2]int64{Nanotime(), Cputicks()}
	first := firstLook.Load()
	if first == nil {
		firstLook.CompareAndSwap(nil, &now)
		first = firstLook.Load()
	}
	elapsed := now[0] - first[0]
	if elapsed < 1000 {
		return ns
	}
	return int64(float64(ns) * float64(now[1]-first[1]) / float64(elapsed))
}
