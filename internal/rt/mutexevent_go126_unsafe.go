//go:build gc && go1.26 && !go1.27 && (amd64 || arm64) && !purego

package rt

import _ "unsafe" // for go:linkname

// MutexProfiled reports whether MutexEvent reaches the mutex profile.
const MutexProfiled = true

//go:linkname mutexevent sync.event
func mutexevent(cycles int64, skip int)

// MutexEvent charges the calling goroutine, which unlocks, with a delay of
// cycles (a difference of two Cputicks) in the mutex profile, subject to its
// sampling rate. skip 0 puts the caller of MutexEvent on top of the stack.
//
//go:noinline
func MutexEvent(cycles int64, skip int) { mutexevent(cycles, skip+profileSkip) }
