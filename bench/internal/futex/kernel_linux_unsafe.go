//go:build linux

package futex

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls: futex2's where there are any, else the old one.
const (
	opWait, opWake, opCmpRequeue  = 0, 1, 4
	opLockPI, opUnlockPI, private = 6, 7, 128
	size32                        = 2
	allBits                       = 0xffffffff
)

// A Kernel says which of the kernel's futexes.
type Kernel struct {
	Shared bool // between processes: in the kernel's global hash
	// Blocking calls the kernel as a Go program has to call what may block. Else the runtime is not told, which only
	// waits that are sure to be refused allow.
	Blocking bool
}

// Missing returns why the kernel's futex cannot be measured, nil if it can.
func Missing() error { return nil }

// New returns the operations.
func (k Kernel) New() (Futex, error) {
	classic, modern := uintptr(private), uintptr(size32|private)
	if k.Shared {
		classic, modern = 0, size32
	}
	wait := func(word *uint32, val uint32) unix.Errno {
		_, _, err := unix.Syscall6(unix.SYS_FUTEX, address(word), opWait|classic, uintptr(val), 0, 0, 0)
		return err
	}
	refused := func(word *uint32) unix.Errno {
		_, _, err := unix.RawSyscall6(unix.SYS_FUTEX, address(word), opWait|classic, 1, 0, 0, 0)
		return err
	}
	if hasFutex2() {
		wait = func(word *uint32, val uint32) unix.Errno {
			_, _, err := unix.Syscall6(unix.SYS_FUTEX_WAIT, address(word), uintptr(val), allBits, modern, 0, unix.CLOCK_MONOTONIC)
			return err
		}
		refused = func(word *uint32) unix.Errno {
			_, _, err := unix.RawSyscall6(unix.SYS_FUTEX_WAIT, address(word), 1, allBits, modern, 0, unix.CLOCK_MONOTONIC)
			return err
		}
	}
	if k.Blocking {
		refused = func(word *uint32) unix.Errno { return wait(word, 1) }
	}
	return Futex{
		Refuse: func(words []uint32) error {
			for i := range words {
				if refused(&words[i]) != unix.EAGAIN {
					return errUnrefused
				}
			}
			return nil
		},
		Wait: func(word *uint32, val uint32) bool { return wait(word, val) == 0 },
		Wake: func(word *uint32, n int) int {
			woken, _, _ := unix.RawSyscall6(unix.SYS_FUTEX, address(word), opWake|classic, uintptr(n), 0, 0, 0)
			return int(woken)
		},
		Requeue: func(from, to *uint32, n int) int {
			val := atomic.LoadUint32(from)
			moved, _, err := unix.RawSyscall6(unix.SYS_FUTEX, address(from), opCmpRequeue|classic, 0, uintptr(n), address(to), uintptr(val))
			if err != 0 {
				return 0
			}
			return int(moved)
		},
	}, nil
}

// address is for a system call only. The word is on the heap: who passes it holds it.
func address(word *uint32) uintptr { return uintptr(unsafe.Pointer(word)) }

// hasFutex2 asks with a wait that is refused.
func hasFutex2() bool {
	word := new(uint32)
	_, _, err := unix.RawSyscall6(unix.SYS_FUTEX_WAIT, address(word), 1, allBits, size32|private, 0, unix.CLOCK_MONOTONIC)
	return err == unix.EAGAIN
}

// A PI is the kernel's lock that is handed to who waits with the highest priority, and the longest of these. Whoever
// uses it is locked to a thread.
type PI struct{ word uint32 }

// Lock locks l for the thread of this id.
func (l *PI) Lock(tid uint32) {
	for !atomic.CompareAndSwapUint32(&l.word, 0, tid) {
		if _, _, err := unix.Syscall6(unix.SYS_FUTEX, address(&l.word), opLockPI|private, 0, 0, 0, 0); err == 0 {
			return
		}
	}
}

// Unlock unlocks l, which the thread of this id has locked.
func (l *PI) Unlock(tid uint32) {
	if !atomic.CompareAndSwapUint32(&l.word, tid, 0) {
		unix.RawSyscall6(unix.SYS_FUTEX, address(&l.word), opUnlockPI|private, 0, 0, 0, 0)
	}
}

// ThreadID returns the id of the calling thread.
func ThreadID() uint32 { return uint32(unix.Gettid()) }
