//go:build !sync2_std && sim

package sync2

import (
	"time"

	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

type (
	atomicUint32  = sim.Uint32
	atomicInt32   = sim.Int32
	atomicUint64  = sim.Uint64
	atomicInt64   = sim.Int64
	atomicUintptr = sim.Uintptr

	atomicPointer[T any] = sim.Pointer[T]
)

func pin() int           { return rt.Pin() }
func unpin()             { rt.Unpin() }
func canSpin(i int) bool { return rt.CanSpin(i) }
func yield()             { rt.Yield() }
func fatal(msg string)   { rt.Fatal(msg) }
func cputicks() int64    { return rt.Cputicks() }
func nanotime() int64    { return rt.Nanotime() }
func spawn(f func())     { sim.Go(f) }

func pause(uint32) { pauseFor(0) }

// A spin is one try, or none, in some schedule each.
type spin struct {
	pause int64
	tried bool
}

func (s *spin) patient(*Mutex) bool {
	if s.tried || !sim.Running() {
		return false
	}
	s.tried = true
	return sim.Choose(2) == 1
}

func noteTaken(*Mutex)      {}
func noteTry(*Mutex, int64) {}

// Whether a run has few processors: readers of an RWMutex come and go in the word
// then, whatever it says, and the waiters of a Broadcast wake in turn.
var inWord = false

func many() bool { return !inWord }

func glance(looks *int) bool {
	if *looks == 1 || !sim.Running() || sim.Choose(2) == 0 {
		return false
	}
	*looks++
	pauseFor(0)
	return true
}

func pauseFor(int64) {
	if sim.Running() {
		sim.Pause()
	}
}

func now() time.Time {
	if sim.Running() {
		return time.Unix(0, sim.Nanotime())
	}
	return time.Now()
}

// isOvertaken is so for every waiter in a run: mayHandOver is what varies.
func isOvertaken(since int64) bool { return sim.Running() || since != 0 }

// mayHandOver is both, in some schedule each.
func mayHandOver(*Mutex) bool { return !sim.Running() || sim.Choose(2) == 1 }

func mutant(name string) bool { return sim.Mutant(name) }

func table() *parking.Table { return parking.Default() }

// How a run unlocks: by a plain store and the setter's fence (linux/amd64, under
// TSO), by a plain store alone (arm64, where that is sound, under SC), or always
// by a read-modify-write. Ordinary tests do the last.
const (
	symmetric = iota
	plainAndFence
	plainOnly
)

var (
	simUnlock   = symmetric // of a Mutex
	simCounters = symmetric // stores to the counters of an RWMutex
	simFixed    = false     // counters neither come nor go
)

func asymmetric() bool { return simUnlock != symmetric && sim.Running() }

func switchAsymmetric(on bool) bool { return on == asymmetric() }

func storePlain(word *atomicUint32, v uint32)        { sim.StorePlain32(word, v) }
func storeBetweenLoads(word *atomicUint32, v uint32) { sim.StorePlain32(word, v) }

func prepareFence() {}

func heavyFence() {
	if (simUnlock == plainAndFence || simCounters == plainAndFence) && sim.Running() {
		sim.HeavyFence()
	}
}

const perPReaders = true

func pooledCounters() *counters { return newCounters(max(1, sim.Procs())) }

// The counters come and go whenever they may.
func growAfter() uint32 { return 0 }

func undisturbed(loaded, left int32) bool {
	return left == loaded+rwReader && (simFixed || sim.Choose(2) == 0)
}

func takenAway() bool { return !simFixed && sim.Choose(2) == 1 }

// bump adds d to the counter of the P that the caller is pinned to.
func bump(n *atomicInt64, d int64) {
	sim.MustPinned("counter")
	if simCounters != symmetric {
		sim.StorePlainInt64(n, sim.LoadPlainInt64(n)+d)
	} else {
		n.Add(d)
	}
}

// An episode of contention may end at every unlock; or, if calmMost is more than
// a tag of 0 unlocks, after as many as that counts.
var calmMost uint32

func quietAllowed(*Mutex) bool { return sim.Choose(2) == 1 }
func noteEpisode(*Mutex)       {}

// hereTag is 1 + the NUMA node of the thread's P.
func hereTag() uint32 {
	if sim.Running() {
		return 1 + uint32(sim.Node(sim.CPU()))
	}
	return 1
}

// A goroutine makes a request at once: the other looks are those of Lock.
const looksAlone = 0

// All mutexes share one slot with two cells, which a program makes anew.
const askCells = 2

var askSlots [1]askSlot

func asksFor(*Mutex) *askSlot { return &askSlots[0] }
func firstCell() int          { return 0 }

func batchFrom() int32 {
	if sim.Running() {
		return 1
	}
	return int32(tunedBatch.Load())
}

// simSpare is a request that the program has prepared for whoever makes one next.
// Records are not used again else: they would carry a schedule over to the next.
var simSpare *request

func newRequest() *request {
	if r := simSpare; r != nil {
		simSpare = nil
		return r
	}
	return new(request)
}

func freeRequest(*request) {}
func newBatch() *batch     { return makeBatch() }
func freeBatch(*batch)     {}

// A goroutine that has asked gives up after a look or two.
func patient(round int, begin int64) bool {
	if sim.Running() {
		return round < 1 || round < 2 && sim.Choose(2) == 1
	}
	return nanotime()-begin < spinLimit()
}

func insideBubble() bool { return !sim.Running() && inBubble(now()) }
