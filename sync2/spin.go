//go:build !sync2_std && !sim

package sync2

import (
	"runtime"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// How a contender spins. A cache line takes longer from CPU to CPU than a short
// section does, most of all between the chiplets of one package. So it is best to
// let the owner of short sections run, and to take over after a turn of some
// microseconds. With long sections or long pauses between them, on the other hand,
// a contender who comes late wastes his time.
//
// What tells the two apart is how soon the next contender comes after somebody
// who had to wait has taken the mutex: with short sections in close succession at
// once, and that again and again. At once is measured by the trip of the cache line,
// as that is part of it: the line may take 25 ns or 200, and on a virtual machine
// this one today and that one tomorrow.

// A spin is a contender's waiting since he came or last parked.
type spin struct {
	pause   int64 // before the next try, in ns
	tries   uint8
	inTurns bool // sections are short
	crowded bool // others wait for this P
}

// The tries of one spin. The pauses before them are 1, 1, 2, 2, 4, 4, 8, 8, 16 and 16
// of 64 parts of Tunables.Spin, or in turns all of it each time. The first are short:
// who comes 300 ns late to a mutex that is free for 300 ns lets it be taken by its last
// owner, who then runs alone. On a P for which others wait there is one turn, or no try
// at all: so short a pause is nearly always followed by success, and whomever the owner
// has woken would wait for the P until the end of a time slice.
const (
	triesMost           = 10
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
	s.pause = spinLimit() / 64 << (s.tries / 2)
	switch {
	case s.inTurns && s.crowded:
		most, s.pause = triesInTurnsCrowded, spinLimit()
	case s.inTurns:
		most, s.pause = triesInTurns, spinLimit()
	case s.crowded:
		most = 0
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

// A turnover is the last time that a contender took some mutex, how many times in a
// row the next contender came right after that, and how long a try takes. Mutexes
// share it by their address; then a contender may wait too long, or try too often.
type turnover struct {
	taken  atomicUint32 // in cputicks, the low half
	streak atomicUint32
	trip   atomicUint32 // in cputicks / tripUnit
	_      [52]byte
}

var turnovers [slots]turnover

const (
	tripUnit     = 16
	rightAfter   = 3 // trips from a take to the next contender, at most
	streakEnough = 4
)

// noteTaken is told that the caller, who had to wait, owns m.
func noteTaken(m *Mutex) { storePlain(&turnovers[slotOf(m)].taken, uint32(cputicks())) }

// noteTry is told that a try at m, which began at cputicks begin, has ended. Nearly
// all of a try is the trip of m's cache line.
func noteTry(m *Mutex, begin int64) {
	turnovers[slotOf(m)].learn(rt.Cputicks() - begin) // cputicks would not wait for the end of the try
}

// learn moves trip towards the time that three of four tries do not exceed, by three
// steps up for one down: that passes over those who find the line where they left it,
// and over the few who lost their CPU.
func (t *turnover) learn(took int64) {
	trip := t.trip.Load()
	step := trip/32 + 1
	if took*tripUnit > int64(trip) {
		trip += 3 * step
	} else {
		trip -= min(trip, step)
	}
	storePlain(&t.trip, trip)
}

// wantedAtOnce is asked when a contender comes to m, and reports whether the last
// few came right after somebody had taken it.
func wantedAtOnce(m *Mutex) bool {
	t := &turnovers[slotOf(m)]
	streak := t.streak.Load()
	apart := int64(int32(uint32(cputicks()) - t.taken.Load())) // the other one may be ahead by a little
	switch {
	case max(apart, -apart)*tripUnit > rightAfter*int64(t.trip.Load()):
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
