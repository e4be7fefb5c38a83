//go:build !sync2_std

package sync2

import (
	"runtime"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

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

// ticksOf converts nanoseconds to the unit of cputicks: the CPU's counter on
// amd64, nanoseconds on arm64.
func ticksOf(ns int64) int64 {
	if runtime.GOARCH != "amd64" {
		return ns
	}
	return int64(float64(ns) * float64(asm.TicksPerMicrosecond()) / 1000)
}
