//go:build linux

package parking

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory that is placed on NUMA nodes comes from the system in pages of its own:
// a policy is a property of pages, and the Go heap's pages serve others later.

// Modes of memory policies, and the flag that asks for that of an address
// (set_mempolicy(2), get_mempolicy(2)).
const (
	mpolPreferred = 1
	mpolFAddr     = 1 << 1
	mpolModeFlags = 7 << 13 // bits beside the mode

	nodeWords = 1024 / 64 // of a mask with a bit for each node that Linux can have
	nodeBits  = nodeWords*64 + 1
)

type nodeSet [nodeWords]uint64

// mapBuckets returns n zero buckets in memory that prefers the NUMA node of the
// given id. Where the kernel refuses, as it does for a node that a cpuset
// excludes or that does not exist, they are wherever they are first used.
func mapBuckets(n int, id int) ([]bucket, error) {
	size := mappedSize(n)
	mem, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, ErrNoMemory
	}
	if id < nodeWords*64 {
		var nodes nodeSet
		nodes[id/64] = 1 << (id % 64)
		unix.Syscall6(unix.SYS_MBIND, uintptr(mem), size, mpolPreferred, uintptr(unsafe.Pointer(&nodes)), nodeBits, 0)
	}
	return unsafe.Slice((*bucket)(mem), n), nil
}

// unmapBuckets undoes mapBuckets.
func unmapBuckets(b []bucket) {
	if err := unix.MunmapPtr(unsafe.Pointer(&b[0]), mappedSize(len(b))); err != nil {
		panic("parking: cannot unmap buckets: " + err.Error())
	}
}

func mappedSize(n int) uintptr {
	page := uintptr(os.Getpagesize())
	return (uintptr(n)*bucketSize + page - 1) / page * page
}

// policyNode returns the NUMA node that the memory policy of an address prefers,
// or NoNode. Only a policy of the mapping counts, not the thread's. The home node
// of a BIND or PREFERRED_MANY policy cannot be asked for, so these count as none.
//
//go:norace
func policyNode(addr uintptr) int {
	var mode int32
	var nodes nodeSet
	_, _, errno := unix.RawSyscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&nodes)),
		nodeBits, addr, mpolFAddr, 0)
	if errno != 0 || mode&^mpolModeFlags != mpolPreferred {
		return NoNode
	}
	for i, w := range nodes {
		for b := range 64 {
			if w>>b&1 != 0 {
				return i*64 + b
			}
		}
	}
	return NoNode
}
