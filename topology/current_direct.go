//go:build amd64 && gc && !purego && !race && !sim

package topology

import "github.com/hqsync/hqsync/asm"

// cpuNode returns the caller's CPU and NUMA node. In this build package asm has
// instructions for it.
var cpuNode = asm.CPUNode

func lastCPU() (cpu uint32, ok bool) {
	cpu, _, ok = cpuNode()
	return cpu, ok
}

func remember() {}
