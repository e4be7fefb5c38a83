//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !sim

package asm

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// heavy is the process's fence.
var heavy = fencer{call: membarrier, drain: drain}

func heavyFence() bool { return heavy.fence() }

func heavyFenceAvailable() bool { return heavy.available() }

func registerHeavyFence() bool { return heavy.register(membarrierUnpinned) }

func heavyFenceLost() bool { return heavy.state.Load() == fenceLost }

// Commands of membarrier(2); QUERY answers with the bits of those it knows.
const (
	membarrierQuery    = 0
	membarrierPrivate  = 1 << 3 // private expedited
	membarrierRegister = 1 << 4 // register for it
)

// membarrier may be called pinned: the runtime does not learn of it.
func membarrier(command uintptr) (uintptr, syscall.Errno) {
	r, _, errno := syscall.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return r, errno
}

// membarrierUnpinned lets go of the P if the call takes long.
func membarrierUnpinned(command uintptr) (uintptr, syscall.Errno) {
	r, _, errno := syscall.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return r, errno
}

// fencer is the state machine of HeavyFence:
//
//	T1  unknown -> absent | offered   the kernel was asked
//	T2  offered -> ready              the process is registered
//	T3  offered | ready -> lost       the kernel refused
//
// absent and lost are final.
type fencer struct {
	state atomic.Uint32
	call  func(command uintptr) (uintptr, syscall.Errno)
	drain func() bool // forces the fences without membarrier
}

const (
	fenceUnknown = iota
	fenceAbsent
	fenceOffered
	fenceReady
	fenceLost
)

func (f *fencer) available() bool {
	if f.state.Load() == fenceUnknown {
		f.ask()
	}
	state := f.state.Load()
	return state == fenceOffered || state == fenceReady
}

// ask is T1. Of several that ask at once, all get the same answer.
func (f *fencer) ask() {
	const needed = membarrierPrivate | membarrierRegister
	answer := uint32(fenceAbsent)
	if known, errno := f.call(membarrierQuery); errno == 0 && known&needed == needed {
		answer = fenceOffered
	}
	f.state.CompareAndSwap(fenceUnknown, answer)
}

// register is T2, or T3 if the kernel refuses. It registers by the given call;
// that is the only command that takes long.
func (f *fencer) register(by func(command uintptr) (uintptr, syscall.Errno)) bool {
	if f.available() && f.state.Load() == fenceOffered {
		if _, errno := by(membarrierRegister); errno == 0 {
			if _, errno = f.call(membarrierPrivate); errno == 0 {
				f.state.CompareAndSwap(fenceOffered, fenceReady)
			}
		}
		f.loseUnlessReady()
	}
	return f.state.Load() == fenceReady
}

// loseUnlessReady is T3 for the one whose registration failed. Another that
// registered at the same time may have succeeded; then nothing is lost.
func (f *fencer) loseUnlessReady() { f.state.CompareAndSwap(fenceOffered, fenceLost) }

// fence looks at no state of its own first: the kernel knows whether the
// process is registered.
func (f *fencer) fence() bool {
	if _, errno := f.call(membarrierPrivate); errno == 0 {
		return true
	}
	return f.fenceSlow()
}

func (f *fencer) fenceSlow() bool {
	if !f.available() && f.state.Load() == fenceAbsent {
		return false
	}
	// Not registered so far, or registered by somebody since the call failed.
	if f.register(f.call) {
		if _, errno := f.call(membarrierPrivate); errno == 0 {
			return true
		}
	}
	// Tell before draining: who sees the caller's stores after this fence also
	// sees that the fence is lost.
	f.state.Store(fenceLost) // T3
	return f.drain()
}
