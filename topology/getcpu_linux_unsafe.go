//go:build linux

package topology

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// cpuNode returns the caller's CPU and NUMA node.
var cpuNode = cachedGetcpu

// getcpu asks the kernel for the CPU and NUMA node of the thread. ok is false
// where a sandbox forbids it.
//
// The conversions to uintptr are in the call of an assembly function, which keeps
// both variables alive and in place; they stay on the stack. The raw form does
// not tell the scheduler of the call, which is too short for that to matter.
func getcpu() (cpu, node uint32, ok bool) {
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), uintptr(unsafe.Pointer(&node)), 0)
	return cpu, node, errno == 0
}
