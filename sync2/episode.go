//go:build !sync2_std && !sim

package sync2

import (
	"math/bits"

	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// Making a contended mutex quiet saves a locked instruction per Unlock, and
// costs its next waiter a fence on every CPU. So there is a bound on how often a
// mutex may go through that: an episode of contention lasts at least quietAfter,
// and longer each time the next one follows soon.
const (
	calmMost   = 1 << 31 // tag from here on: 2^15 unlocks in a row without a waiter
	quietAfter = 5 * 1_000_000
	maxGrowth  = 6
	soon       = 20 // episodes follow soon if there are fewer lengths of an episode between them
)

// episodes remembers when the current episode of some mutex began, and how
// often it grew: nanoseconds in the high bits, growth in the low ones. Mutexes
// share a slot by their address; that makes an episode longer, at worst.
var episodes [256]atomicUint64

const growthMask = 7

func episodeOf(m *Mutex) *atomicUint64 {
	const golden = 0x9E3779B97F4A7C15
	addr := uint64(parking.AddrOf(m))
	return &episodes[addr*golden>>(64-bits.Len(uint(len(episodes)-1)))]
}

// noteEpisode records that m has become contended.
func noteEpisode(m *Mutex) {
	e := episodeOf(m)
	last, now := e.Load(), uint64(rt.Nanotime())
	growth := last & growthMask
	if now-last&^growthMask > soon*quietAfter<<growth {
		growth = 0
	} else if growth < maxGrowth {
		growth++
	}
	e.Store(now&^growthMask | growth)
}

// quietAllowed reports whether m's episode has lasted long enough.
func quietAllowed(m *Mutex) bool {
	e := episodeOf(m).Load()
	return uint64(rt.Nanotime())-e&^growthMask > quietAfter<<(e&growthMask)
}
