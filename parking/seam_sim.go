//go:build sim

package parking

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/internal/sim"
)

type (
	atomicUint32  = sim.Uint32
	atomicInt32   = sim.Int32
	atomicInt64   = sim.Int64
	atomicUintptr = sim.Uintptr
	resizeMutex   = sim.Mutex
	parker        = rt.Parker
)

// align8 aligns a struct that it is in to 8 bytes, also on 32-bit machines.
type align8 = [0]atomic.Uint64

type atomicPointer[T any] = sim.Pointer[T]

func pin() int               { return rt.Pin() }
func unpin()                 { rt.Unpin() }
func nanotime() int64        { return rt.Nanotime() }
func yield()                 { rt.Yield() }
func prefetchBucket(*bucket) {}
func prefetch(*waiter)       {}

func pause(n uint32) {
	if sim.Running() {
		sim.Pause()
	} else {
		asm.Pause(n)
	}
}

// A bucketLock in a run takes one step to lock and one to unlock, unless
// SimRealLocks says otherwise. That an hq.Lock excludes and wakes its waiters
// is what the programs of package hq show; without its steps those of this
// package and of sync2 are small enough to be explored whole.
type bucketLock struct{ hq.Lock }

// SimRealLocks says whether runs have the steps of hq.Lock in them.
var SimRealLocks bool

func simWhole() bool { return !SimRealLocks && sim.Running() }

// LockPinned locks l.
func (l *bucketLock) LockPinned() {
	if simWhole() {
		sim.MustPinned("LockPinned")
		sim.LockWhole(l)
	} else {
		l.Lock.LockPinned()
	}
}

// TryLockPinned locks l if it is free.
func (l *bucketLock) TryLockPinned() bool {
	if simWhole() {
		sim.MustPinned("TryLockPinned")
		return sim.TryLockWhole(l)
	}
	return l.Lock.TryLockPinned()
}

// UnlockPinned unlocks l.
func (l *bucketLock) UnlockPinned() {
	if simWhole() {
		sim.UnlockWhole(l)
	} else {
		l.Lock.UnlockPinned()
	}
}

// SetHQ does nothing to a lock that is one step.
func (l *bucketLock) SetHQ(allowed bool) {
	if !simWhole() {
		l.Lock.SetHQ(allowed)
	}
}

const (
	spinTries    = 2 // one round that waits for a change, and one that sees it
	migrateBatch = 1
)

// profiling reports whether anybody may ask for Delay.
func profiling() bool { return rt.MutexProfiled && runtime.SetMutexProfileFraction(-1) > 0 }

func now() time.Time {
	if sim.Running() {
		return time.Unix(0, sim.Nanotime())
	}
	return time.Now()
}

func afterFunc(d time.Duration, f func()) (stop func() bool) { return sim.AfterFunc(d, f).Stop }

func afterCancel(ctx context.Context, f func()) (stop func() bool) {
	if sim.Running() {
		return sim.AfterCancel(ctx, f)
	}
	return context.AfterFunc(ctx, f)
}

// simFreed is told of records that come back in a run.
var simFreed = func(*waiter) {}

// A record that came back is not used again in the same run, so that a late use
// of it is found.
var (
	waiters    sync.Pool
	quarantine sim.Quarantine[waiter]
)

func pinWithRecord() (w *waiter) {
	if sim.Running() {
		w = quarantine.Get()
	} else if w, _ = waiters.Get().(*waiter); w == nil {
		w = new(waiter)
	}
	pin()
	return w
}

// A magazine of this build has one record or none.
type magazine struct{ top *waiter }

func putRecord(_ int, w *waiter) magazine { return magazine{w} }

func (m magazine) deposit() {
	if sim.Running() {
		simFreed(m.top)
		quarantine.Put(m.top)
	} else {
		waiters.Put(m.top)
	}
}

func storePlain(word *atomicUint32, v uint32) { sim.StorePlain32(word, v) }

func multiplier(number uint32) uint64 {
	if sim.Exploring() {
		return 1
	}
	return randomMultiplier(number)
}

// scatter: in a run addresses differ from schedule to schedule, and their
// numbers take their place.
func scatter(addr uintptr, mult uint64) uint64 {
	if !sim.Exploring() {
		return mix(addr, mult)
	}
	const golden = 0x9E3779B97F4A7C15 // parts 1, 2, 3 in one bit already
	return sim.ID(addr) * golden
}

// ResetForSim makes everything anew that outlives a schedule. One program of
// this package, or of one that is built on it, is explored at a time. In Setup
// the default table also gets its buckets, so that no schedule needs to.
func ResetForSim() {
	defaultTable = Table{}
	process = domain{}
	spaces = atomicUint32{}
	if SimRealLocks {
		hq.ResetForSim()
	}
	if sim.Exploring() {
		sim.Name(&process, "process")
		defaultTable.prepareForSim("table")
	}
}

// prepareForSim gives the table its buckets, and names to its words.
func (t *Table) prepareForSim(name string) {
	sim.Name(t, name)
	h := t.root(Key{})
	sim.Name(h, name+".hash")
	for i := range h.buckets {
		sim.Name(&h.buckets[i], fmt.Sprintf("%s.bucket%d", name, i))
	}
}

func initialSlots() int {
	if sim.Exploring() {
		return 2
	}
	return max(16, 1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
}

func ordered(n int) (slots int, custom bool, m mode) {
	if sim.Exploring() {
		return n, false, mutable
	}
	return orderedByEnvironment(n)
}

// thisMachine is one NUMA node in a run, which depends on nothing outside it, and
// no CPUs, which makes the global hash as small as it can be.
func thisMachine() *machine {
	if !sim.Exploring() {
		return realMachine()
	}
	return newMachine([]int{0}, 0, func() int { return 0 }, func(uintptr) int { return NoNode })
}

func loadNode(p *int32) int32                 { return sim.OfInt32(p).Load() }
func casNode(p *int32, old, new int32) bool   { return sim.OfInt32(p).CompareAndSwap(old, new) }
func loadWord(p *uint32) uint32               { return sim.Of32(p).Load() }
func casWord(p *uint32, old, new uint32) bool { return sim.Of32(p).CompareAndSwap(old, new) }

// In a run groups are treated as waiters are.
var (
	groups            = sync.Pool{New: func() any { return new(group) }}
	quarantinedGroups sim.Quarantine[group]
)

func getGroup() *group {
	if sim.Running() {
		return quarantinedGroups.Get()
	}
	return groups.Get().(*group)
}

func putGroup(g *group) {
	if sim.Running() {
		quarantinedGroups.Put(g)
	} else {
		groups.Put(g)
	}
}

// mutant reports whether the run has the seeded fault of this name.
func mutant(name string) bool { return sim.Mutant(name) }
