//go:build sync2_std || (!sim && !race)

package sync2

import "sync/atomic"

// The words. They are declared here, not imported from one shared place, because
// an alias of an atomic type from another package does not inline.
type (
	atomicUint32  = atomic.Uint32
	atomicInt32   = atomic.Int32
	atomicUint64  = atomic.Uint64
	atomicInt64   = atomic.Int64
	atomicUintptr = atomic.Uintptr

	atomicPointer[T any] = atomic.Pointer[T]
)
