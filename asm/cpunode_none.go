//go:build !linux

package asm

// cpuNode: other kernels do not tell, or only by a CPU number that says nothing
// about nodes.
func cpuNode() (cpu, node uint32, ok bool) { return 0, 0, false }
