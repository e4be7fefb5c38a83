//go:build !linux

package topology

// cpuNode returns the caller's CPU and NUMA node, which only Linux tells.
var cpuNode = getcpu

func getcpu() (cpu, node uint32, ok bool) { return 0, 0, false }
