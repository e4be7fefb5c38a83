//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !sim

package asm

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// drain makes every other thread of the process pass a full fence, without
// membarrier. It uses raw system calls only, since the caller may be pinned.
func drain() bool {
	return (unmapInterrupts() && drainByUnmap()) || drainByVisit()
}

// drainByUnmap unmaps a page that is in use. Before the page can be reused, the
// kernel interrupts every CPU that runs a thread of the process, to drop its
// translation, and waits for the answers. An interrupt and its return are a
// full fence; a thread that is not running passed one when it was switched out.
//
// That holds only where translations are dropped by interrupts: see
// unmapInterrupts. The page is the call's own, so that calls need no lock, and
// is written to, so that there is a translation to drop.
func drainByUnmap() bool {
	size := uintptr(syscall.Getpagesize())
	addr, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, 0, size,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
	if errno != 0 {
		return false
	}
	// Sound: the page is mapped writable, not the Go heap's, and nobody else
	// knows it.
	*(*byte)(unsafe.Add(unsafe.Pointer(nil), addr)) = 1
	_, _, errno = syscall.RawSyscall(unix.SYS_MUNMAP, addr, size, 0)
	return errno == 0
}

// cpuMask is a set of CPUs in the kernel's form, large enough for any kernel:
// it is configured for 8192 at most.
type cpuMask [8192 / bitsPerWord]uintptr

const bitsPerWord = 8 * unsafe.Sizeof(uintptr(0))

func (m *cpuMask) flip(cpu uintptr) { m[cpu/bitsPerWord] ^= 1 << (cpu % bitsPerWord) }

// drainByVisit runs the calling thread on each CPU that the process may use.
// Where it runs, another thread of the process was switched out, and that is a
// full fence; a thread that moved away from a CPU was switched out there too.
// CPUs outside the cpuset refuse, and run no thread of the process either.
//
// The thread waits its turn on each CPU, so this is slow: drain prefers
// drainByUnmap. The goroutine is locked to the thread, since it must give the
// thread its own CPUs back.
func drainByVisit() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var own, one cpuMask
	size, _, errno := syscall.RawSyscall(unix.SYS_SCHED_GETAFFINITY, 0,
		unsafe.Sizeof(own), uintptr(unsafe.Pointer(&own)))
	if errno != 0 {
		return false
	}
	visited := 0
	for cpu := range 8 * size {
		one.flip(cpu)
		errno = setAffinity(&one, size)
		one.flip(cpu)
		if errno == 0 {
			visited++
		} else if errno != unix.EINVAL {
			break // refused as such, not for this CPU
		}
	}
	back := setAffinity(&own, size)
	return visited > 0 && back == 0 && (errno == 0 || errno == unix.EINVAL)
}

// setAffinity binds the calling thread; it returns on one of the CPUs.
func setAffinity(mask *cpuMask, size uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, 0, size, uintptr(unsafe.Pointer(mask)))
	return errno
}
