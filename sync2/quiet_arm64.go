//go:build gc && !purego && !race && !sim && !sync2_std

package sync2

// On arm64 a store-release is ordered before a later load-acquire, and that is
// what sync/atomic's Store and Load are: a quiet mutex is unlocked by a store
// instead of a read-modify-write, and nobody needs a fence.

func asymmetric() bool { return true }

func switchAsymmetric(on bool) bool { return on == asymmetric() }

func storePlain(word *atomicUint32, v uint32)        { word.Store(v) }
func storeBetweenLoads(word *atomicUint32, v uint32) { word.Store(v) }

func prepareFence() {}
func heavyFence()   {}

// bump adds d to the counter of the P that the caller is pinned to.
func bump(n *atomicInt64, d int64) { n.Store(n.Load() + d) }
