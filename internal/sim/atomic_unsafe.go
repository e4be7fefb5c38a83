//go:build sim

package sim

import (
	"sync/atomic"
	"unsafe"
)

// The engine identifies a word by its address and its width. The conversions below keep the address a pointer, so that the
// word outlives the schedule; they are read back only in peek and poke, at the width they were made with.

func addr32(x *atomic.Uint32) addr { return addr(x) }
func addr64(x *atomic.Uint64) addr { return addr(x) }

// Of32 returns a word of the code under test that is an ordinary uint32, as a futex operation takes it.
func Of32(p *uint32) *Uint32 { return (*Uint32)(unsafe.Pointer(p)) }

// OfInt32 is Of32 for an int32.
func OfInt32(p *int32) *Int32 { return (*Int32)(unsafe.Pointer(p)) }

// wordUintptr is the width of a Uintptr.
const wordUintptr = width(unsafe.Sizeof(uintptr(0))/8) * word64

// A Uintptr is an atomic uintptr.
type Uintptr struct{ v atomic.Uintptr }

func (x *Uintptr) Load() uintptr {
	if t := current(); t != nil {
		return uintptr(t.load(addr(&x.v), wordUintptr, opLoad, seqcst).n)
	}
	return x.v.Load()
}

func (x *Uintptr) Store(v uintptr) {
	if t := current(); t != nil {
		t.store(addr(&x.v), wordUintptr, u64(uint64(v)), opStore, seqcst)
		return
	}
	x.v.Store(v)
}

func (x *Uintptr) Swap(v uintptr) uintptr {
	if t := current(); t != nil {
		return t.updatePtr(&x.v, opSwap, v)
	}
	return x.v.Swap(v)
}

func (x *Uintptr) CompareAndSwap(old, new uintptr) bool {
	if t := current(); t != nil {
		_, ok := t.update(addr(&x.v), wordUintptr, opCAS, u64(uint64(old)), u64(uint64(new)))
		return ok
	}
	return x.v.CompareAndSwap(old, new)
}

func (x *Uintptr) Add(delta uintptr) uintptr {
	if t := current(); t != nil {
		return t.updatePtr(&x.v, opAdd, delta) + delta
	}
	return x.v.Add(delta)
}

func (x *Uintptr) And(mask uintptr) uintptr {
	if t := current(); t != nil {
		return t.updatePtr(&x.v, opAnd, mask)
	}
	return x.v.And(mask)
}

func (x *Uintptr) Or(mask uintptr) uintptr {
	if t := current(); t != nil {
		return t.updatePtr(&x.v, opOr, mask)
	}
	return x.v.Or(mask)
}

func (t *thread) updatePtr(x *atomic.Uintptr, op opcode, v uintptr) uintptr {
	old, _ := t.update(addr(x), wordUintptr, op, u64(uint64(v)), value{})
	return uintptr(old.n)
}

// A Pointer is an atomic pointer of type *T.
type Pointer[T any] struct{ v atomic.Pointer[T] }

func ptr[T any](p *T) value { return value{p: addr(p)} }

func (x *Pointer[T]) Load() *T {
	if t := current(); t != nil {
		return (*T)(t.load(addr(&x.v), wordPtr, opLoad, seqcst).p)
	}
	return x.v.Load()
}

func (x *Pointer[T]) Store(p *T) {
	if t := current(); t != nil {
		t.store(addr(&x.v), wordPtr, ptr(p), opStore, seqcst)
		return
	}
	x.v.Store(p)
}

func (x *Pointer[T]) Swap(p *T) *T {
	if t := current(); t != nil {
		old, _ := t.update(addr(&x.v), wordPtr, opSwap, ptr(p), value{})
		return (*T)(old.p)
	}
	return x.v.Swap(p)
}

func (x *Pointer[T]) CompareAndSwap(old, new *T) bool {
	if t := current(); t != nil {
		_, ok := t.update(addr(&x.v), wordPtr, opCAS, ptr(old), ptr(new))
		return ok
	}
	return x.v.CompareAndSwap(old, new)
}

// LoadAcquirePtr is LoadAcquire32 for pointers.
func LoadAcquirePtr[T any](x *Pointer[T]) *T {
	if t := current(); t != nil {
		return (*T)(t.load(addr(&x.v), wordPtr, opLoadAcquire, acqrel).p)
	}
	return x.v.Load()
}

// StoreReleasePtr is StoreRelease32 for pointers.
func StoreReleasePtr[T any](x *Pointer[T], p *T) {
	if t := current(); t != nil {
		t.store(addr(&x.v), wordPtr, ptr(p), opStoreRelease, acqrel)
		return
	}
	x.v.Store(p)
}
