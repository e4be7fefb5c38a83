package asm_test

import (
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/asm/internal/beside"
)

func BenchmarkCPUNode(b *testing.B) {
	if _, _, ok := asm.CPUNode(); !ok {
		b.Skip("this kernel does not tell the CPU")
	}
	beside.Run(b, "getcpu",
		func(n int) {
			for range n {
				cpu, _, _ := asm.CPUNode()
				sink32 = cpu
			}
		},
		func(n int) {
			var cpu, node uint32
			for range n {
				syscall.RawSyscall(unix.SYS_GETCPU,
					uintptr(unsafe.Pointer(&cpu)), uintptr(unsafe.Pointer(&node)), 0)
			}
			sink32 = cpu
		})
}
