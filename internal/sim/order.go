//go:build sim

package sim

// The operations that sync/atomic lacks. What each means depends on the memory of the run:
//
//	               SC        TSO (amd64)              AcqRel
//	LoadPlain      load      MOV, sees own buffer     may read any value the thread is not forced past; learns nothing
//	LoadAcquire    load      the same                 the same, but learns what a release store published
//	StorePlain     store     into the store buffer    publishes nothing
//	StoreRelease   store     the same                 publishes what the thread knows
//	Fence          nothing   drains the own buffer    orders all before with all after
//	HeavyFence     nothing   drains every buffer,     the same on every thread, each at a moment of its own
//	                         each at its own moment
//
// Outside a run they are the operations of sync/atomic, which are at least as strong; Fence is then a locked instruction and
// HeavyFence the same, which suffices because every store is a locked one too.

// LoadPlain32 is a load as the compiler makes it for an ordinary variable.
func LoadPlain32(x *Uint32) uint32 {
	if t := current(); t != nil {
		return uint32(t.load(addr32(&x.v), word32, opLoadPlain, relaxed).n)
	}
	return x.v.Load()
}

// StorePlain32 is a store as the compiler makes it for an ordinary variable: on amd64 a MOV.
func StorePlain32(x *Uint32, v uint32) {
	if t := current(); t != nil {
		t.store(addr32(&x.v), word32, u32(v), opStorePlain, relaxed)
		return
	}
	x.v.Store(v)
}

// LoadAcquire32 is a load that later accesses of the same thread cannot pass.
func LoadAcquire32(x *Uint32) uint32 {
	if t := current(); t != nil {
		return uint32(t.load(addr32(&x.v), word32, opLoadAcquire, acqrel).n)
	}
	return x.v.Load()
}

// StoreRelease32 is a store that earlier accesses of the same thread cannot pass. Later loads can.
func StoreRelease32(x *Uint32, v uint32) {
	if t := current(); t != nil {
		t.store(addr32(&x.v), word32, u32(v), opStoreRelease, acqrel)
		return
	}
	x.v.Store(v)
}

// LoadPlain64 is LoadPlain32 for 64 bits.
func LoadPlain64(x *Uint64) uint64 {
	if t := current(); t != nil {
		return t.load(addr64(&x.v), word64, opLoadPlain, relaxed).n
	}
	return x.v.Load()
}

// StorePlain64 is StorePlain32 for 64 bits.
func StorePlain64(x *Uint64, v uint64) {
	if t := current(); t != nil {
		t.store(addr64(&x.v), word64, u64(v), opStorePlain, relaxed)
		return
	}
	x.v.Store(v)
}

// LoadAcquire64 is LoadAcquire32 for 64 bits.
func LoadAcquire64(x *Uint64) uint64 {
	if t := current(); t != nil {
		return t.load(addr64(&x.v), word64, opLoadAcquire, acqrel).n
	}
	return x.v.Load()
}

// StoreRelease64 is StoreRelease32 for 64 bits.
func StoreRelease64(x *Uint64, v uint64) {
	if t := current(); t != nil {
		t.store(addr64(&x.v), word64, u64(v), opStoreRelease, acqrel)
		return
	}
	x.v.Store(v)
}

// The same for signed words.

func LoadPlainInt32(x *Int32) int32       { return int32(LoadPlain32(&x.u)) }
func StorePlainInt32(x *Int32, v int32)   { StorePlain32(&x.u, uint32(v)) }
func LoadAcquireInt32(x *Int32) int32     { return int32(LoadAcquire32(&x.u)) }
func StoreReleaseInt32(x *Int32, v int32) { StoreRelease32(&x.u, uint32(v)) }
func LoadPlainInt64(x *Int64) int64       { return int64(LoadPlain64(&x.u)) }
func StorePlainInt64(x *Int64, v int64)   { StorePlain64(&x.u, uint64(v)) }
func LoadAcquireInt64(x *Int64) int64     { return int64(LoadAcquire64(&x.u)) }
func StoreReleaseInt64(x *Int64, v int64) { StoreRelease64(&x.u, uint64(v)) }

// SwapBits32 replaces the bits of x in mask by those of v and returns what x was: an exchange of part of a word, which some
// machines have and sync/atomic lacks.
func SwapBits32(x *Uint32, mask, v uint32) (old uint32) {
	if t := current(); t != nil {
		Atomically(func() {
			old = x.Load()
			x.Store(old&^mask | v)
		})
		return old
	}
	for {
		old = x.v.Load()
		if x.v.CompareAndSwap(old, old&^mask|v) {
			return old
		}
	}
}

// StoreBits32 is a release store to part of a word. Only a cost model lets it wait in a store buffer.
func StoreBits32(x *Uint32, mask, v uint32) {
	if t := current(); t != nil && t.cost != nil {
		t.cost.store(addr32(&x.v), word32, uint64(mask), u32(v))
		return
	}
	SwapBits32(x, mask, v)
}

var outside Uint32 // the word that Fence locks outside a run

// Fence orders every earlier access of the caller before every later one.
func Fence() {
	t := current()
	if t == nil {
		outside.v.Add(0)
		return
	}
	t.point(opFence, nil)
	t.drainAll()
	if t.e.mode == AcqRel {
		t.fence()
	}
	t.e.note(t, nil, value{}, value{}, "")
}

// HeavyFence makes every thread of the process pass a fence: membarrier. It is modelled weaker than that of Linux is
// usually taken to be: it is not one instant but reaches each other thread at some moment between call and return.
func HeavyFence() {
	t := current()
	if t == nil {
		outside.v.Add(0)
		return
	}
	t.point(opHeavyFence, nil)
	t.e.note(t, nil, value{}, value{}, "begins")
	switch t.e.mode {
	case TSO:
		t.awaitDrains()
	case AcqRel:
		t.interruptAll()
	}
	t.e.note(t, nil, value{}, value{}, "ends")
}
