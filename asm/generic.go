package asm

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/rt"
)

// The generic bodies. They are always compiled, so that one test binary
// compares each with the body that the build selected.

func storeRelease32Generic(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

func storeRelease64Generic(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

func loadAcquire32Generic(p *uint32) uint32 { return atomic.LoadUint32(p) }

// fenceGeneric: a locked instruction on any address drains the store buffer on
// amd64. On the other CPUs that take the generic build, every access it could
// order is sync/atomic's and needs no fence.
func fenceGeneric() {
	var word uint32
	atomic.AddUint32(&word, 0)
}

// genericHint is the length of a spin hint in empty iterations, so that n hints
// last about as long as they do on CPUs that have the instruction.
const genericHint = 32

func pauseGeneric(n uint32) {
	for range n {
		for range genericHint {
		}
	}
}

func waitWhileEqual32Generic(p *uint32, v, n uint32) uint32 {
	for {
		seen := atomic.LoadUint32(p)
		if seen != v || n == 0 {
			return seen
		}
		n--
		pauseGeneric(1)
	}
}

func ticksGeneric() uint64 { return uint64(rt.Nanotime()) }

// ticksPerMicrosecondGeneric is exact: generic ticks are nanoseconds.
func ticksPerMicrosecondGeneric() uint64 { return 1000 }

// prefetchWGeneric does nothing: a prefetch is a hint.
func prefetchWGeneric(addr uintptr) {}
