//go:build gc && !purego && !race && !sim

package asm

import "sync/atomic"

// anchor is loaded, and never stored to, on both sides of a release store. It
// has a cache line of its own so that the loads always hit.
var anchor struct {
	_    [64]byte
	word uint32
	_    [60]byte
}

// storeRelease32 is a plain store, which is a release on amd64. What has to be
// held back is the compiler: it merges a plain store with the stores next to it,
// and where the merged store crosses a cache line its halves become visible one
// by one (TestLitmusMP_StoresNotMerged shows it on hardware). It keeps the order
// of memory operations around an atomic load, and merges nothing across one:
// hence the two loads. Without them the mark that an inlined call leaves behind
// happens to stop it too, in Go 1.26 and 1.27; that is not to be counted on.
//
// An assembly body would be safe from the compiler as well, but the call would
// take longer than the store, and most of the inlining budget of a caller
// (BenchmarkStoreRelease32 here and of the candidate; TestInlining).
func storeRelease32(p *uint32, v uint32) {
	_ = atomic.LoadUint32(&anchor.word)
	*p = v
	_ = atomic.LoadUint32(&anchor.word)
}

func storeRelease64(p *uint64, v uint64) {
	_ = atomic.LoadUint32(&anchor.word)
	*p = v
	_ = atomic.LoadUint32(&anchor.word)
}

func loadAcquire32(p *uint32) uint32 { return loadAcquire32Generic(p) }

func fence() { fenceGeneric() }

// pause executes PAUSE n times.
func pause(n uint32)

// waitWhileEqual32 has the contract of WaitWhileEqual32; its hint is PAUSE.
//
//go:noescape
func waitWhileEqual32(p *uint32, v, n uint32) uint32

// ticks is RDTSC, neither serialised nor ordered with loads.
func ticks() uint64

// prefetchW is PREFETCHW; a CPU that lacks it executes it as a no-op.
func prefetchW(addr uintptr)
