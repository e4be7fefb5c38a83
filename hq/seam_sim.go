//go:build sim

package hq

import (
	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/internal/sim"
)

type (
	atomicUint32 = sim.Uint32
	atomicUint64 = sim.Uint64
)

type atomicPointer[T any] = sim.Pointer[T]

type parker = rt.Parker

func pin() int        { return rt.Pin() }
func unpin()          { rt.Unpin() }
func nanotime() int64 { return rt.Nanotime() }

func pause(n uint32) {
	if sim.Running() {
		sim.Pause()
	} else {
		asm.Pause(n)
	}
}

const (
	clockEvery = 1
	maxBackoff = 1
	stolenGap  = 50_000
	ownGap     = 10_000
	staleAfter = 20_000
	sleepSlots = 64
)

// How many rosters there are, and nodes of each P; programs make them scarce.
var simRosters, simNodes uint32 = maxRosters, nodesPerP

func rosterLimit() uint32 { return simRosters }
func nodeLimit() uint32   { return simNodes }

// simDomains is the number of domains in a run.
var simDomains = 1

func domains() int {
	if sim.Running() {
		return simDomains
	}
	return realDomains()
}

func here() uint32 {
	if sim.Running() {
		return uint32(sim.Domain(sim.CPU())) % maxDomains
	}
	return realHere()
}

func mutant(name string) bool { return sim.Mutant(name) }

// A lockWord is the word of a Lock.
type lockWord struct{ sim.Uint32 }

// Add is how a Lock is unlocked.
func (w *lockWord) Add(delta uint32) uint32 {
	if mutant("hq: unlock in two halves") {
		w.Store(w.Load() + delta)
		return w.Load()
	}
	return w.Uint32.Add(delta)
}

// slotNumber is the same for all: addresses differ from schedule to schedule.
func slotNumber(addr uintptr) uintptr {
	if sim.Running() {
		return 0
	}
	return addr / 64 % sleepSlots
}
