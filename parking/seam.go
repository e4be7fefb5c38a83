package parking

import (
	"sync"
	"sync/atomic"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock. They are declared here, not imported from one shared place,
// because an alias of an atomic type from another package does not inline.
type (
	atomicUint32  = atomic.Uint32
	atomicInt32   = atomic.Int32
	atomicUintptr = atomic.Uintptr
	resizeMutex   = sync.Mutex
	parker        = rt.Parker
)

type atomicPointer[T any] = atomic.Pointer[T]

func pin()            { rt.Pin() }
func unpin()          { rt.Unpin() }
func pause(n uint32)  { asm.Pause(n) }
func nanotime() int64 { return rt.Nanotime() }
func yield()          { rt.Yield() }

// waiters is a cache for each P of records that are not in use.
var waiters = sync.Pool{New: func() any { return new(waiter) }}
