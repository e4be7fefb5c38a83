//go:build sim

package locks

import (
	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/sim"
)

type (
	atomicUint32 = sim.Uint32
	atomicUint64 = sim.Uint64
)

func pause() {
	if sim.Running() {
		sim.Pause()
	} else {
		asm.Pause(1)
	}
}

func backOff(n uint32) {
	if sim.Running() {
		sim.BackOff(n)
	} else {
		asm.Pause(n)
	}
}

func storeRelease(x *atomicUint32, v uint32) { sim.StoreRelease32(x, v) }

func setBits(x *atomicUint32, mask, v uint32) { sim.StoreBits32(x, mask, v) }

func swapBits(x *atomicUint32, mask, v uint32) (old uint32) { return sim.SwapBits32(x, mask, v) }
