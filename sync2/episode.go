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
	maxGrowth  = 3
	soon       = 20 // episodes follow soon if there are fewer lengths of an episode between them
)

// episodes remembers when the current episode of some mutex began, and how
// often it grew: nanoseconds in the high bits, growth in the low ones. Mutexes
// share a slot by their address; that makes an episode longer, at worst.
var episodes [slots]atomicUint64

const growthMask = 7

func episodeOf(m *Mutex) *atomicUint64 { return &episodes[slotOf(m)] }

// slotOf is where m is remembered outside of its 8 bytes.
func slotOf(m *Mutex) uint64 {
	const golden = 0x9E3779B97F4A7C15
	return uint64(parking.AddrOf(m)) * golden >> (64 - bits.Len(slots-1))
}

const slots = 256

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

// overtakenFor is how long a waiter is overtaken, in ns, before the mutex may be
// handed to it: the starvation threshold of package sync.
const overtakenFor = 1_000_000

// turns remembers when some mutex was last handed over, in ns. Mutexes share a
// slot by their address; then a waiter waits longer, at worst.
var turns [slots]atomicUint64

// isOvertaken reports whether a waiter since then, 0 if it has not been woken in
// vain yet, has waited long enough.
func isOvertaken(since int64) bool { return since != 0 && rt.Nanotime()-since > overtakenFor }

// mayHandOver reports whether m may be handed over already. If all have waited
// long, as with very many goroutines, handing over at every unlock would make each
// section cost a switch: hence the slices.
func mayHandOver(m *Mutex) bool {
	last, now := &turns[slotOf(m)], rt.Nanotime()
	if now-int64(last.Load()) < sliceLength() { // last may be of another waker, and later than now
		return false
	}
	last.Store(uint64(now))
	return true
}
