//go:build gc && !purego

package candidate

// StoreRelease32 is asm.StoreRelease32 as a call.
//
//go:noescape
func StoreRelease32(p *uint32, v uint32)

// StoreRelease8 is a release store of one byte of a word.
//
//go:noescape
func StoreRelease8(p *uint8, v uint8)

// CompareAndSwap32 is sync/atomic's with acquire ordering only, which amd64
// does not distinguish.
//
//go:noescape
func CompareAndSwap32(p *uint32, old, new uint32) (swapped bool)

// TestAndSetBit32 sets a bit of *p, counted from 0 and taken modulo 32, and
// reports whether it was set before. It is sequentially consistent.
//
//go:noescape
func TestAndSetBit32(p *uint32, bit uint32) (was bool)

// MemoryFence is MFENCE.
func MemoryFence()

// TimedPause sleeps for the given ticks in state C0.1. It needs WAITPKG. The
// kernel may end it sooner, Linux after 100,000 ticks by default.
func TimedPause(ticks uint64)

// WaitUMWAIT32 waits while *p == v, for the given ticks at most, and returns
// the value that it saw last. It needs WAITPKG.
//
//go:noescape
func WaitUMWAIT32(p *uint32, v uint32, ticks uint64) uint32

// WaitMWAITX32 waits while *p == v, for the given ticks at most, and returns
// the value that it saw last. It needs MONITORX.
//
//go:noescape
func WaitMWAITX32(p *uint32, v uint32, ticks uint64) uint32
