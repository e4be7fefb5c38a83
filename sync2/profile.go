//go:build !sync2_std

package sync2

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/rt"
)

// blocked adds a wait that began at cputicks since to the block profile. skip 0
// puts the caller's caller on top of the stack.
func blocked(since int64, skip int) {
	if since != 0 {
		rt.BlockEvent(cputicks()-since, skip+2)
	}
}

// charge adds the wait of a goroutine that the caller is waking, waited ns long,
// to the mutex profile. skip is as in blocked.
func charge(waited int64, skip int) {
	if rt.MutexProfiled && waited > 0 && runtime.SetMutexProfileFraction(-1) > 0 {
		rt.MutexEvent(rt.NanosecondsToTicks(waited), skip+2)
	}
}
