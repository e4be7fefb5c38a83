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
type (
	atomicUint32 = atomic.Uint32
	lockWord     = atomic.Uint32
	atomicUint64 = atomic.Uint64
)

type atomicPointer[T any] = atomic.Pointer[T]

type parker = rt.Parker

func pin() int        { return rt.Pin() }
func unpin()          { rt.Unpin() }
func pause(n uint32)  { asm.Pause(n) }
func nanotime() int64 { return rt.Nanotime() }

const (
	clockEvery = 32     // pauses between two looks at the clock, about 1 us
	maxBackoff = 32     // pauses between two looks of a waiter without a node
	stolenGap  = 50_000 // ns between two looks at the clock from which on the thread was off its CPU
	ownGap     = 10_000 // ns between two looks which are several times what comes between them ever takes
	staleAfter = 20_000 // ns since a waiter has looked at the clock, beyond its budget
	sleepSlots = 64
)

func rosterLimit() uint32 { return maxRosters }
func nodeLimit() uint32   { return nodesPerP }

func domains() int { return realDomains() }
func here() uint32 { return realHere() }

// mutant reports whether the seeded fault of this name is there; see the programs
// of the model checker.
func mutant(string) bool { return false }

// slotNumber spreads locks over the sleep slots by the bucket that they are the
// first word of: 64 bytes apart.
func slotNumber(addr uintptr) uintptr { return addr / 64 % sleepSlots }
