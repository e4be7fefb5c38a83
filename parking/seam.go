//go:build !sim

package parking

import (
	"context"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/rt"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock. They are declared here, not imported from one shared place,
// because an alias of an atomic type from another package does not inline.
type (
	atomicUint32  = atomic.Uint32
	atomicInt32   = atomic.Int32
	atomicInt64   = atomic.Int64
	atomicUintptr = atomic.Uintptr
	resizeMutex   = sync.Mutex
	bucketLock    = hq.Lock
	parker        = rt.Parker
)

// align8 aligns a struct that it is in to 8 bytes, also on 32-bit machines.
type align8 = [0]atomic.Uint64

type atomicPointer[T any] = atomic.Pointer[T]

func pin() int        { return rt.Pin() }
func unpin()          { rt.Unpin() }
func pause(n uint32)  { asm.Pause(n) }
func nanotime() int64 { return rt.Nanotime() }
func yield()          { rt.Yield() }

// prefetch asks for what making the owner of w ready begins with.
//
//go:norace
func prefetch(w *waiter) { asm.PrefetchW(w.parker.Sleeper()) }

//go:norace
func prefetchBucket(b *bucket) { asm.PrefetchW(b.line()) }

const (
	spinTries    = 200
	migrateBatch = 32 // queues
)

// mutant is where the model checker's builds have seeded faults.
func mutant(string) bool { return false }

// profiling reports whether anybody may ask for Delay.
func profiling() bool { return rt.MutexProfiled && runtime.SetMutexProfileFraction(-1) > 0 }

func now() time.Time { return time.Now() }

func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

func afterCancel(ctx context.Context, f func()) (stop func() bool) { return context.AfterFunc(ctx, f) }

func multiplier(number uint32) uint64                { return randomMultiplier(number) }
func ordered(n int) (slots int, custom bool, m mode) { return orderedByEnvironment(n) }
func thisMachine() *machine                          { return realMachine() }

func scatter(addr uintptr, mult uint64) uint64 { return mix(addr, mult) }

// initialSlots is enough for one contended address for each P or so.
func initialSlots() int { return max(16, 1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1))) }

// The words of futex operations belong to users, who use sync/atomic.

func loadNode(p *int32) int32                 { return atomic.LoadInt32(p) }
func casNode(p *int32, old, new int32) bool   { return atomic.CompareAndSwapInt32(p, old, new) }
func loadWord(p *uint32) uint32               { return atomic.LoadUint32(p) }
func casWord(p *uint32, old, new uint32) bool { return atomic.CompareAndSwapUint32(p, old, new) }

// groups is a cache for each P of groups that are not in use.
var groups = sync.Pool{New: func() any { return new(group) }}

func getGroup() *group  { return groups.Get().(*group) }
func putGroup(g *group) { groups.Put(g) }
