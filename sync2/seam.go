//go:build !sync2_std

package sync2

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock. They are declared here, not imported from one shared place,
// because an alias of an atomic type from another package does not inline.
type (
	atomicUint32  = atomic.Uint32
	atomicInt32   = atomic.Int32
	atomicUint64  = atomic.Uint64
	atomicUintptr = atomic.Uintptr
)

func canSpin(i int) bool { return rt.CanSpin(i) }
func pause(n uint32)     { asm.Pause(n) }
func yield()             { rt.Yield() }
func fatal(msg string)   { rt.Fatal(msg) }
func cputicks() int64    { return rt.Cputicks() }

// table is where the goroutines of this package park.
func table() *parking.Table { return parking.Default() }
