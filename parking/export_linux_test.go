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

// Modes of memory policies.
const (
	DefaultPolicy = 0
	Preferred     = mpolPreferred
	Bind          = 2
	Interleave    = 3
	Local         = 4
	PreferredMany = 5
)

// A MappedWord is on a page of its own.
type MappedWord struct{ *NUMAWord }

const wordPage = 4096

// MapWord maps a page with a memory policy and writes to it. If home is true,
// the first of the nodes becomes the policy's home node. A mode of -1 leaves the
// mapping without a policy of its own.
func MapWord(mode int, nodes []int, home bool) (*MappedWord, error) {
	mem, err := unix.MmapPtr(-1, 0, nil, wordPage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	w := &MappedWord{(*NUMAWord)(mem)}
	if err := w.setPolicy(mode, nodes, home); err != nil {
		w.Unmap()
		return nil, err
	}
	w.Val = 0
	return w, nil
}

func (w *MappedWord) setPolicy(mode int, nodes []int, home bool) error {
	if mode < 0 {
		return nil
	}
	set := newNodeSet(nodes)
	if _, _, errno := unix.Syscall6(unix.SYS_MBIND, w.Addr(), wordPage, uintptr(mode), set.pointer(), nodeBits, 0); errno != 0 {
		return errno
	}
	if !home {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_SET_MEMPOLICY_HOME_NODE, w.Addr(), wordPage, uintptr(nodes[0]), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (w *MappedWord) Addr() uintptr { return AddrOf(&w.Val) }

func (w *MappedWord) Unmap() { unix.MunmapPtr(unsafe.Pointer(w.NUMAWord), wordPage) }

// SetThreadPolicy sets the memory policy of the calling thread.
func SetThreadPolicy(mode int, nodes []int) error {
	set := newNodeSet(nodes)
	if _, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), set.pointer(), nodeBits); errno != 0 {
		return errno
	}
	return nil
}

func newNodeSet(nodes []int) *nodeSet {
	set := new(nodeSet)
	for _, id := range nodes {
		set[id/64] |= 1 << (id % 64)
	}
	return set
}

// pointer is for one system call, which must not move the set: it escapes.
func (s *nodeSet) pointer() uintptr {
	kept = s
	return uintptr(unsafe.Pointer(s))
}

var kept *nodeSet

// GlobalQueued returns the number of waiters on an address in a NUMA node's
// buckets that tables share.
//
//go:norace
func (t *Table) GlobalQueued(addr uintptr, node int) (n int) {
	h := t.globalHash()
	pin()
	defer unpin()
	for _, key := range []Key{{addr, inGlobal | uint32(node+1)}, {addr, inGlobal | shared | uint32(node+1)}} {
		s, at := t.lock(h, key)
		if *at != nil {
			n += int((*at).length)
		}
		s.release()
	}
	return n
}
