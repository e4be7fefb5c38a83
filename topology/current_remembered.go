//go:build !(amd64 && gc && !purego && !race && !sim)

package topology

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// cpuNode returns the caller's CPU and NUMA node. In this build package asm has to
// ask the kernel, if that can tell.
var cpuNode = rememberedCPUNode

// A perP remembers for one P what the kernel said.
//
//	bits  0-19  CPU
//	bits 20-39  NUMA node
//	bits 40-63  calls that may still use it; none at first
//
// May be wrong: the P goes on with another thread, or its thread is moved. May
// lose a count: its readers are not pinned between load and store.
type perP struct {
	state atomic.Uint64
	_     [120]byte // no other P's state on this cache line, nor on the one next to it
}

const (
	perPBits = 20
	perPMask = 1<<perPBits - 1
	perPCall = 1 << (2 * perPBits)

	// refreshAfter is how many calls use one answer.
	refreshAfter = 64
)

// Ps whose numbers differ by a multiple of len(perPs) share an entry and at
// worst have each other's place.
var perPs [256]perP

// rememberedCPUNode asks the kernel once for refreshAfter calls of a P. Without a
// way to tell Ps apart it asks each time.
//
//go:norace
func rememberedCPUNode() (cpu, node uint32, ok bool) {
	if !rt.Pinnable {
		return asm.CPUNode()
	}
	slot := &perPs[callerIndex()%len(perPs)]
	s := slot.state.Load()
	if s < perPCall {
		cpu, node, ok = asm.CPUNode()
		if !ok {
			return 0, 0, false
		}
		s = uint64(cpu&perPMask) | uint64(node&perPMask)<<perPBits | refreshAfter*perPCall
	}
	slot.state.Store(s - perPCall)
	return uint32(s & perPMask), uint32(s >> perPBits & perPMask), true
}

// lastCPU returns what rememberedCPUNode returned last on the caller's P.
//
//go:norace
func lastCPU() (cpu uint32, ok bool) {
	s := perPs[callerIndex()%len(perPs)].state.Load()
	return uint32(s & perPMask), s != 0
}

//go:norace
func remember() { cpuNode() }
