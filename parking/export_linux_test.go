package parking

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// PageNode returns the NUMA node that the page of an address is on.
func PageNode(addr uintptr) (int, error) {
	const mpolFNode = 1
	var node int32
	_, _, errno := unix.RawSyscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&node)), 0, 0, addr, mpolFAddr|mpolFNode, 0)
	if errno != 0 {
		return NoNode, errno
	}
	return int(node), nil
}
