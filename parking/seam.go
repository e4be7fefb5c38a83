//go:build !sim

package parking

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

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

// profiling reports whether anybody may ask for Delay.
func profiling() bool { return rt.MutexProfiled && runtime.SetMutexProfileFraction(-1) > 0 }

func now() time.Time { return time.Now() }

func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

func afterCancel(ctx context.Context, f func()) (stop func() bool) { return context.AfterFunc(ctx, f) }

// waiters is a cache for each P of records that are not in use.
var waiters = sync.Pool{New: func() any { return new(waiter) }}

func getWaiter() *waiter  { return waiters.Get().(*waiter) }
func putWaiter(w *waiter) { waiters.Put(w) }

// multiplier returns a random odd number.
func multiplier() uint64 { return rand.Uint64() | 1 }

// scatter spreads addresses over 64 bits.
//
//go:norace
func scatter(addr uintptr, mult uint64) uint64 { return uint64(addr) * mult }

// initialSlots is enough for one contended address for each P or so.
func initialSlots() int { return max(16, 1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1))) }

// globalHash returns the hash that tables share.
var globalHash = sync.OnceValue(newGlobalHash)

// mutant is a fault that the simulator can put into this package; here none.
func mutant(string) bool { return false }
