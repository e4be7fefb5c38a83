//go:build linux && amd64 && gc && !purego && !race && !sim && !sync2_std

package sync2

import (
	"runtime"
	"unsafe"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/env"
)

// On amd64 an atomic store is a locked instruction and a plain store is not,
// although it is a release. So a quiet mutex is unlocked by a plain store, and
// what orders that store before the unlocker's next load of tag is a fence that
// the setter forces on all CPUs. Chosen once, before the first Unlock, if the
// kernel has the call; SYNC2=asymmetric=0 declines.
//
// quietUnlocks becomes 0 for ever if the kernel withdraws the call. Setters go
// on fencing then, because an Unlock may still be on its way through its plain
// store.
var (
	quietUnlocks   atomicUint32
	everAsymmetric = chooseAsymmetric()
)

func chooseAsymmetric() bool {
	if v, ok := env.Lookup("asymmetric"); ok && v == "0" || !asm.HeavyFenceAvailable() {
		return false
	}
	quietUnlocks.Store(1)
	return true
}

func asymmetric() bool { return quietUnlocks.Load() != 0 }

// switchAsymmetric chooses how to unlock from now on and reports whether that is
// possible. Both ways may be in use at once: setters fence in any case.
func switchAsymmetric(on bool) bool {
	switch {
	case !on:
		quietUnlocks.Store(0)
	case !everAsymmetric || asm.HeavyFenceLost():
		return false
	default:
		quietUnlocks.Store(1) // if the call is withdrawn meanwhile, the next setter stores 0 again
	}
	return true
}

// storePlain is a release store that is not ordered before later loads.
func storePlain(word *atomicUint32, v uint32) {
	asm.StoreRelease32((*uint32)(unsafe.Pointer(word)), v)
}

// storeBetweenLoads is storePlain for a place right between two atomic loads, which
// keep the compiler from moving it or merging it with another store.
func storeBetweenLoads(word *atomicUint32, v uint32) { *(*uint32)(unsafe.Pointer(word)) = v }

// prepareFence makes heavyFence quick. Not to be called pinned.
func prepareFence() {
	if everAsymmetric {
		asm.RegisterHeavyFence()
	}
}

// heavyFence orders every plain store that another CPU has executed before it
// before everything that the caller loads after it.
func heavyFence() {
	if !everAsymmetric {
		return
	}
	fenced := asm.HeavyFence()
	if asm.HeavyFenceLost() {
		quietUnlocks.Store(0)
	}
	if !fenced {
		unpin()
		stopWorld()
		pin()
	}
}

// stopWorld is a fence when every means has been refused: it makes each P pass
// through the scheduler, and the scheduler through locked instructions. It is no
// part of heavyFence because its frame of 6 KiB would be one of each goroutine
// that makes a mutex contended.
//
//go:noinline
func stopWorld() { runtime.ReadMemStats(new(runtime.MemStats)) }

// bump adds d to the counter of the P that the caller is pinned to: nobody else
// writes it, and the writer's heavyFence orders a plain store before the
// caller's next load.
func bump(n *atomicInt64, d int64) {
	if asymmetric() {
		*(*int64)(unsafe.Pointer(n)) += d // one instruction; the next load is atomic, so it stays behind
	} else {
		n.Add(d)
	}
}
