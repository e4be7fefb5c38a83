//go:build !sync2_std && !sim && (!gc || purego || race || !(arm64 || (amd64 && linux)))

package sync2

// Without a fence that other CPUs can be made to execute, every Unlock is a
// read-modify-write. A mutex that has once been contended then keeps its tag.

func asymmetric() bool { return false }

func switchAsymmetric(on bool) bool { return on == asymmetric() }

func storePlain(word *atomicUint32, v uint32)        { word.Store(v) }
func storeBetweenLoads(word *atomicUint32, v uint32) { word.Store(v) }

func prepareFence() {}
func heavyFence()   {}

// bump adds d to the counter of the P that the caller is pinned to.
func bump(n *atomicInt64, d int64) { n.Add(d) }
