//go:build !sync2_std && !sim && race

package sync2

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/race"
)

// The race detector takes each atomic operation for an edge, which package
// sync's are not: a Lock that is not followed by an Unlock orders nothing. So the
// words of this package hide from it, and the methods that promise an edge state
// it.

// Only in what is not used under the race detector (perPReaders).
type atomicInt64 = atomic.Int64

type atomicUint32 struct{ v atomic.Uint32 }

//go:norace
func (w *atomicUint32) Load() uint32 {
	race.Disable()
	defer race.Enable()
	return w.v.Load()
}

//go:norace
func (w *atomicUint32) Store(v uint32) {
	race.Disable()
	defer race.Enable()
	w.v.Store(v)
}

//go:norace
func (w *atomicUint32) Add(delta uint32) uint32 {
	race.Disable()
	defer race.Enable()
	return w.v.Add(delta)
}

//go:norace
func (w *atomicUint32) CompareAndSwap(old, new uint32) bool {
	race.Disable()
	defer race.Enable()
	return w.v.CompareAndSwap(old, new)
}

//go:norace
func (w *atomicUint32) Or(mask uint32) uint32 {
	race.Disable()
	defer race.Enable()
	return w.v.Or(mask)
}

//go:norace
func (w *atomicUint32) And(mask uint32) uint32 {
	race.Disable()
	defer race.Enable()
	return w.v.And(mask)
}

type atomicInt32 struct{ v atomic.Int32 }

//go:norace
func (w *atomicInt32) Load() int32 {
	race.Disable()
	defer race.Enable()
	return w.v.Load()
}

//go:norace
func (w *atomicInt32) Add(delta int32) int32 {
	race.Disable()
	defer race.Enable()
	return w.v.Add(delta)
}

//go:norace
func (w *atomicInt32) CompareAndSwap(old, new int32) bool {
	race.Disable()
	defer race.Enable()
	return w.v.CompareAndSwap(old, new)
}

type atomicUint64 struct{ v atomic.Uint64 }

//go:norace
func (w *atomicUint64) Store(v uint64) {
	race.Disable()
	defer race.Enable()
	w.v.Store(v)
}

//go:norace
func (w *atomicUint64) Load() uint64 {
	race.Disable()
	defer race.Enable()
	return w.v.Load()
}

//go:norace
func (w *atomicUint64) Add(delta uint64) uint64 {
	race.Disable()
	defer race.Enable()
	return w.v.Add(delta)
}

//go:norace
func (w *atomicUint64) CompareAndSwap(old, new uint64) bool {
	race.Disable()
	defer race.Enable()
	return w.v.CompareAndSwap(old, new)
}

type atomicUintptr struct{ v atomic.Uintptr }

//go:norace
func (w *atomicUintptr) Load() uintptr {
	race.Disable()
	defer race.Enable()
	return w.v.Load()
}

//go:norace
func (w *atomicUintptr) CompareAndSwap(old, new uintptr) bool {
	race.Disable()
	defer race.Enable()
	return w.v.CompareAndSwap(old, new)
}

type atomicPointer[T any] struct{ v atomic.Pointer[T] }

//go:norace
func (w *atomicPointer[T]) Load() *T {
	race.Disable()
	defer race.Enable()
	return w.v.Load()
}

//go:norace
func (w *atomicPointer[T]) Store(p *T) {
	race.Disable()
	defer race.Enable()
	w.v.Store(p)
}

//go:norace
func (w *atomicPointer[T]) Swap(p *T) *T {
	race.Disable()
	defer race.Enable()
	return w.v.Swap(p)
}

//go:norace
func (w *atomicPointer[T]) CompareAndSwap(old, new *T) bool {
	race.Disable()
	defer race.Enable()
	return w.v.CompareAndSwap(old, new)
}
