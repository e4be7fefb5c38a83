//go:build sim

package hq

import (
	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/internal/sim"
)

type atomicUint32 = sim.Uint32

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

const sleepSlots = 64

// slotNumber is the same for all: addresses differ from schedule to schedule.
func slotNumber(addr uintptr) uintptr {
	if sim.Running() {
		return 0
	}
	return addr / 64 % sleepSlots
}
