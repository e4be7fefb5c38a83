//go:build !sync2_std && !sim

package sync2

import (
	"runtime"
	"sync"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock; the words are in words.go and words_race.go.
func pin() int           { return rt.Pin() }
func unpin()             { rt.Unpin() }
func pause(n uint32)     { asm.Pause(n) }
func canSpin(i int) bool { return rt.CanSpin(i) }
func yield()             { rt.Yield() }
func fatal(msg string)   { rt.Fatal(msg) }
func nanotime() int64    { return rt.Nanotime() }
func spawn(f func())     { go f() }

func now() time.Time { return time.Now() }

// pauseFor waits for d ns, or less if there is no clock of ns, or one that stands
// still: the portable one does in a bubble of testing/synctest.
func pauseFor(d int64) {
	const hints, atLeast = 2, 10 // between two looks at the clock; ns that this takes
	end := asm.Ticks() + uint64(d)*asm.TicksPerMicrosecond()/1000
	for looks := d / atLeast; looks > 0 && int64(end-asm.Ticks()) > 0; looks-- {
		asm.Pause(hints)
	}
}

// cputicks is the time in the unit of the block profile. On amd64 the runtime reads
// the same counter behind a fence, which takes twice as long. Under the race
// detector package asm counts nanoseconds.
func cputicks() int64 {
	if runtime.GOARCH == "amd64" && rt.Pinnable && !race.Enabled {
		return int64(asm.Ticks())
	}
	return rt.Cputicks()
}

// mutant is a fault that the simulator can put into this package; here none.
func mutant(string) bool { return false }

// table is where the goroutines of this package park.
func table() *parking.Table { return parking.Default() }

// looksAlone is how often a goroutine in Mutex.Do looks at the mutex before it
// makes a request.
const looksAlone = 2

// askCells is how many requests of Mutex.Do a slot holds.
const askCells = 31

// askSlots is shared by all mutexes.
var askSlots [64]askSlot

func asksFor(m *Mutex) *askSlot {
	const golden = 0x9E3779B97F4A7C15
	return &askSlots[uint64(parking.AddrOf(m))*golden>>(64-6)]
}

// batchFrom returns Tunables.Batch.
func batchFrom() int32 { return int32(tunedBatch.Load()) }

// firstCell is where to look for a free cell first.
func firstCell() int { return int(rt.Rand() % askCells) }

var requests, batches sync.Pool

func newRequest() *request {
	if r, ok := requests.Get().(*request); ok {
		return r
	}
	return new(request)
}

func newBatch() *batch {
	if b, ok := batches.Get().(*batch); ok {
		return b
	}
	return makeBatch()
}

func freeRequest(r *request) { requests.Put(r) }
func freeBatch(b *batch)     { batches.Put(b) }

// patient reports whether a goroutine that has asked goes on spinning.
func patient(_ int, begin int64) bool { return nanotime()-begin < spinLimit() }

// insideBubble reports whether the caller is in a synctest bubble.
func insideBubble() bool { return inBubble(now()) }

// perPReaders says whether readers of an RWMutex may be counted by P: not where
// goroutines cannot be pinned, nor under the race detector, which would slow the
// simple way down by less.
const perPReaders = rt.Pinnable && !race.Enabled

func growAfter() uint32 { return clashesMost }
func takenAway() bool   { return true }

// inWord says that readers come and go in the word, whatever it says: there are too
// few processors for counters by P ever to pay. Readers then spare the look at the
// word, which is a trip of its cache line.
var inWord = !perPReaders || uint64(runtime.NumCPU()) < manyFrom

// undisturbed reports whether nobody else changed the word of an RWMutex between
// the load and the add of a reader who enters.
func undisturbed(loaded, left int32) bool { return left == loaded+rwReader }

// maxCounters is how many counters there are in the process. An RWMutex that is
// garbage gives its back.
const maxCounters = 256

var livingCounters atomicUint32

// pooledCounters returns new counters, or nil if there are too many.
func pooledCounters() *counters {
	if livingCounters.Add(1) > maxCounters {
		livingCounters.Add(^uint32(0))
		return nil
	}
	c := newCounters(runtime.GOMAXPROCS(0))
	runtime.AddCleanup(c, func(living *atomicUint32) { living.Add(^uint32(0)) }, &livingCounters)
	return c
}
