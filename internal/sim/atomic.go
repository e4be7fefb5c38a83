//go:build sim

package sim

import "sync/atomic"

// The types below have the methods, size and zero value of their namesakes in sync/atomic. Every method is one step of the
// calling simulated thread; for everybody else it is the method of sync/atomic.

func u32(v uint32) value { return value{n: uint64(v)} }
func u64(v uint64) value { return value{n: v} }

// A Uint32 is an atomic uint32.
type Uint32 struct{ v atomic.Uint32 }

func (x *Uint32) Load() uint32 {
	if t := current(); t != nil {
		return uint32(t.load(addr32(&x.v), word32, opLoad, seqcst).n)
	}
	return x.v.Load()
}

func (x *Uint32) Store(v uint32) {
	if t := current(); t != nil {
		t.store(addr32(&x.v), word32, u32(v), opStore, seqcst)
		return
	}
	x.v.Store(v)
}

func (x *Uint32) Swap(v uint32) uint32 {
	if t := current(); t != nil {
		return t.update32(&x.v, opSwap, v)
	}
	return x.v.Swap(v)
}

func (x *Uint32) CompareAndSwap(old, new uint32) bool {
	if t := current(); t != nil {
		_, ok := t.update(addr32(&x.v), word32, opCAS, u32(old), u32(new))
		return ok
	}
	return x.v.CompareAndSwap(old, new)
}

func (x *Uint32) Add(delta uint32) uint32 {
	if t := current(); t != nil {
		return t.update32(&x.v, opAdd, delta) + delta
	}
	return x.v.Add(delta)
}

func (x *Uint32) And(mask uint32) uint32 {
	if t := current(); t != nil {
		return t.update32(&x.v, opAnd, mask)
	}
	return x.v.And(mask)
}

func (x *Uint32) Or(mask uint32) uint32 {
	if t := current(); t != nil {
		return t.update32(&x.v, opOr, mask)
	}
	return x.v.Or(mask)
}

func (t *thread) update32(x *atomic.Uint32, op opcode, v uint32) uint32 {
	old, _ := t.update(addr32(x), word32, op, u32(v), value{})
	return uint32(old.n)
}

// A Uint64 is an atomic uint64.
type Uint64 struct{ v atomic.Uint64 }

func (x *Uint64) Load() uint64 {
	if t := current(); t != nil {
		return t.load(addr64(&x.v), word64, opLoad, seqcst).n
	}
	return x.v.Load()
}

func (x *Uint64) Store(v uint64) {
	if t := current(); t != nil {
		t.store(addr64(&x.v), word64, u64(v), opStore, seqcst)
		return
	}
	x.v.Store(v)
}

func (x *Uint64) Swap(v uint64) uint64 {
	if t := current(); t != nil {
		return t.update64(&x.v, opSwap, v)
	}
	return x.v.Swap(v)
}

func (x *Uint64) CompareAndSwap(old, new uint64) bool {
	if t := current(); t != nil {
		_, ok := t.update(addr64(&x.v), word64, opCAS, u64(old), u64(new))
		return ok
	}
	return x.v.CompareAndSwap(old, new)
}

func (x *Uint64) Add(delta uint64) uint64 {
	if t := current(); t != nil {
		return t.update64(&x.v, opAdd, delta) + delta
	}
	return x.v.Add(delta)
}

func (x *Uint64) And(mask uint64) uint64 {
	if t := current(); t != nil {
		return t.update64(&x.v, opAnd, mask)
	}
	return x.v.And(mask)
}

func (x *Uint64) Or(mask uint64) uint64 {
	if t := current(); t != nil {
		return t.update64(&x.v, opOr, mask)
	}
	return x.v.Or(mask)
}

func (t *thread) update64(x *atomic.Uint64, op opcode, v uint64) uint64 {
	old, _ := t.update(addr64(x), word64, op, u64(v), value{})
	return old.n
}

// An Int32 is an atomic int32.
type Int32 struct{ u Uint32 }

func (x *Int32) Load() int32        { return int32(x.u.Load()) }
func (x *Int32) Store(v int32)      { x.u.Store(uint32(v)) }
func (x *Int32) Swap(v int32) int32 { return int32(x.u.Swap(uint32(v))) }
func (x *Int32) CompareAndSwap(old, new int32) bool {
	return x.u.CompareAndSwap(uint32(old), uint32(new))
}
func (x *Int32) Add(delta int32) int32 { return int32(x.u.Add(uint32(delta))) }
func (x *Int32) And(mask int32) int32  { return int32(x.u.And(uint32(mask))) }
func (x *Int32) Or(mask int32) int32   { return int32(x.u.Or(uint32(mask))) }

// An Int64 is an atomic int64.
type Int64 struct{ u Uint64 }

func (x *Int64) Load() int64        { return int64(x.u.Load()) }
func (x *Int64) Store(v int64)      { x.u.Store(uint64(v)) }
func (x *Int64) Swap(v int64) int64 { return int64(x.u.Swap(uint64(v))) }
func (x *Int64) CompareAndSwap(old, new int64) bool {
	return x.u.CompareAndSwap(uint64(old), uint64(new))
}
func (x *Int64) Add(delta int64) int64 { return int64(x.u.Add(uint64(delta))) }
func (x *Int64) And(mask int64) int64  { return int64(x.u.And(uint64(mask))) }
func (x *Int64) Or(mask int64) int64   { return int64(x.u.Or(uint64(mask))) }

// A Bool is an atomic bool.
type Bool struct{ u Uint32 }

func b32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (x *Bool) Load() bool                        { return x.u.Load() != 0 }
func (x *Bool) Store(v bool)                      { x.u.Store(b32(v)) }
func (x *Bool) Swap(v bool) bool                  { return x.u.Swap(b32(v)) != 0 }
func (x *Bool) CompareAndSwap(old, new bool) bool { return x.u.CompareAndSwap(b32(old), b32(new)) }
