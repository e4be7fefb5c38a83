//go:build !sim

package locks

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/asm"
)

// The names through which this package reaches shared memory: see the package
// comment of internal/sim.
type (
	atomicUint32 = atomic.Uint32
	atomicUint64 = atomic.Uint64
)

func pause()           { asm.Pause(1) }
func backOff(n uint32) { asm.Pause(n) }

// storeRelease publishes what its caller did before. The locks of the papers need
// no more than a plain store on amd64; sync/atomic's is an exchange.
func storeRelease(x *atomicUint32, v uint32) { x.Store(v) }

// setBits replaces the bits in mask. Linux does it by a store of half a word or
// of a byte, which sync/atomic lacks.
func setBits(x *atomicUint32, mask, v uint32) {
	switch v {
	case 0:
		x.And(^mask)
	case mask:
		x.Or(mask)
	default:
		swapBits(x, mask, v)
	}
}

// swapBits replaces the bits in mask and returns the word before. Linux does it
// by an exchange of half a word.
func swapBits(x *atomicUint32, mask, v uint32) (old uint32) {
	for {
		old = x.Load()
		if x.CompareAndSwap(old, old&^mask|v) {
			return old
		}
	}
}
