//go:build !sync2_std && !sim

package sync2

import (
	"runtime"

	"github.com/hqsync/hqsync/asm"
)

// How a contender spins. A cache line takes longer from CPU to CPU than a short
// section does, most of all between the chiplets of one package. So it is best to
// let the owner of short sections run, and to take over after a turn of some
// microseconds. With long sections or long pauses between them, on the other hand,
// a contender who comes late wastes his time.
//
// What tells the two apart is how soon the next contender comes after somebody
// who had to wait has taken the mutex: with short sections in close succession at
// once, and that again and again.

// A spin is a contender's waiting since he came or last parked.
type spin struct {
	pause   int64 // before the next try, in ns
	tries   uint8
	inTurns bool // sections are short
	crowded bool // others wait for this P
}

// The tries of one spin, and of one on a P for which others wait. The pauses
// before them are 1/16, 1/16, 2/16, 2/16, 4/16, 4/16 of Tunables.Spin, or in turns
// all of it each time.
const (
	triesMost           = 6
	triesCrowded        = 3
	triesInTurns        = 2
	triesInTurnsCrowded = 1
)

// patient reports whether to try again before parking, and sets pause.
func (s *spin) patient(m *Mutex) bool {
	if !parallel() {
		return false
	}
	if s.tries == 0 {
		s.inTurns = wantedAtOnce(m)
		s.crowded = !canSpin(0)
	}
	most := uint8(triesMost)
	s.pause = spinLimit() / 16 << (s.tries / 2)
	switch {
	case s.inTurns && s.crowded:
		most, s.pause = triesInTurnsCrowded, spinLimit()
	case s.inTurns:
		most, s.pause = triesInTurns, spinLimit()
	case s.crowded:
		most = triesCrowded
	}
	s.tries++
	return s.tries <= most && s.pause != 0
}

// glance waits a little before another look at an RWMutex, or reports that it is
// time to park.
func glance(looks *int) bool {
	const most = 4
	if *looks == most || !parallel() {
		return false
	}
	*looks++
	pauseFor(spinLimit() / most)
	return true
}

// A turnover is the last time that a contender took some mutex, and how many
// times in a row the next contender came right after that. Mutexes share it by
// their address; then a contender may wait too long, or try too often.
type turnover struct {
	taken  atomicUint32 // in ticks, the low half
	streak atomicUint32
	_      [56]byte
}

var turnovers [slots]turnover

const (
	rightAfter   = 250 // ns from a take to the next contender, at most, more than a cache line needs
	streakEnough = 4
)

// noteTaken is told that the caller, who had to wait, owns m.
func noteTaken(m *Mutex) { storePlain(&turnovers[slotOf(m)].taken, uint32(asm.Ticks())) }

// wantedAtOnce is asked when a contender comes to m, and reports whether the last
// few came right after somebody had taken it.
func wantedAtOnce(m *Mutex) bool {
	t := &turnovers[slotOf(m)]
	streak := t.streak.Load()
	apart := int32(uint32(asm.Ticks()) - t.taken.Load()) // the other one may be ahead by a little
	switch {
	case max(int64(apart), -int64(apart))*1000 > rightAfter*int64(asm.TicksPerMicrosecond()):
		if streak != 0 {
			t.streak.Store(0)
		}
	case streak < streakEnough:
		t.streak.Store(streak + 1)
	}
	return streak == streakEnough
}

// processors is GOMAXPROCS, or the number of CPUs if that is less, as it was in
// the last 10 ms: to ask the runtime takes its scheduler's lock.
var processors, processorsRead atomicUint64

// manyFrom is the number of processors from which on it pays to avoid what they
// would share: with counters of readers by P, and by moving the waiters of a
// Broadcast. On two the plain ways were faster; four is a guess. Tests change it.
var manyFrom uint64 = 4

// many reports whether there are so many.
func many() bool { return processorsNow() >= manyFrom }

// parallel reports whether the owner of a mutex may be running while a contender
// looks at it.
func parallel() bool { return processorsNow() > 1 }

func processorsNow() uint64 {
	if now := asm.Ticks(); now-processorsRead.Load() > 10_000*asm.TicksPerMicrosecond() {
		processorsRead.Store(now)
		processors.Store(uint64(min(runtime.GOMAXPROCS(0), runtime.NumCPU())))
	}
	return processors.Load()
}
