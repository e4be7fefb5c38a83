package asm

// StoreRelease32 stores v in *p with release ordering: whatever the caller
// loaded or stored before is seen by a goroutine that reads v from *p with
// acquire ordering ([LoadAcquire32] or any operation of sync/atomic). So the
// store synchronizes before that read.
//
// Unlike [sync/atomic.StoreUint32] it does not order the store before later
// loads of the same goroutine: on amd64 it may sit in the CPU's store buffer
// while they execute. Where a later load decides whether somebody must be
// woken, put a [Fence] between, or let the other side pay by [HeavyFence].
//
// Under the race detector it is sync/atomic's store.
func StoreRelease32(p *uint32, v uint32) { storeRelease32(p, v) }

// StoreRelease64 is [StoreRelease32] for 64 bits. On 32-bit CPUs p must be
// 8-byte aligned, as for sync/atomic.
func StoreRelease64(p *uint64, v uint64) { storeRelease64(p, v) }

// LoadAcquire32 loads *p with acquire ordering: later loads and stores of the
// caller happen after it. It is sync/atomic's load under the name of what the
// caller needs, for the call sites that pair with [StoreRelease32].
func LoadAcquire32(p *uint32) uint32 { return loadAcquire32(p) }

// Fence orders the caller's earlier loads and stores before its later ones, the
// store before the load included, which is the one order that release and
// acquire leave open.
//
// On amd64 and arm64 it orders plain, release and atomic accesses alike.
// Elsewhere, and under the race detector, all accesses of this package are
// sequentially consistent by themselves.
func Fence() { fence() }
