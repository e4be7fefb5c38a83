//go:build !sim

package hq

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock. They are declared here, not imported from one shared place,
// because an alias of an atomic type from another package does not inline.
type atomicUint32 = atomic.Uint32

type atomicPointer[T any] = atomic.Pointer[T]

type parker = rt.Parker

func pin() int        { return rt.Pin() }
func unpin()          { rt.Unpin() }
func pause(n uint32)  { asm.Pause(n) }
func nanotime() int64 { return rt.Nanotime() }

const sleepSlots = 64

// slotNumber spreads locks over the sleep slots by the bucket that they are the
// first word of: 64 bytes apart.
func slotNumber(addr uintptr) uintptr { return addr / 64 % sleepSlots }
