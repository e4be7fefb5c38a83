//go:build linux

package asm

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// getcpu asks the kernel.
func getcpu() (cpu, node uint32, ok bool) {
	_, _, errno := syscall.RawSyscall(unix.SYS_GETCPU,
		uintptr(unsafe.Pointer(&cpu)), uintptr(unsafe.Pointer(&node)), 0)
	return cpu, node, errno == 0
}
