//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !sim

package asm

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/internal/rt"
)

// kernel answers the commands of membarrier for a fencer under test, and keeps
// a log of them.
type kernel struct {
	known      uintptr // answer to QUERY
	registered bool
	refuse     map[uintptr]syscall.Errno
	log        []uintptr
	drained    int
	drains     bool
}

const everything = membarrierPrivate | membarrierRegister

func (k *kernel) call(command uintptr) (uintptr, syscall.Errno) {
	k.log = append(k.log, command)
	switch errno := k.refuse[command]; {
	case errno != 0:
		return ^uintptr(0), errno
	case command == membarrierQuery:
		return k.known, 0
	case command == membarrierRegister:
		k.registered = true
	case command == membarrierPrivate && !k.registered:
		return ^uintptr(0), unix.EPERM
	}
	return 0, 0
}

func (k *kernel) fencer() *fencer {
	return &fencer{call: k.call, drain: func() bool { k.drained++; return k.drains }}
}

func twice(f func() bool) bool {
	first := f()
	return f() && first
}

func TestFencerStates(t *testing.T) {
	const (
		query, private, register = uintptr(membarrierQuery), uintptr(membarrierPrivate), uintptr(membarrierRegister)
	)
	refuse := func(errno syscall.Errno, commands ...uintptr) map[uintptr]syscall.Errno {
		m := map[uintptr]syscall.Errno{}
		for _, c := range commands {
			m[c] = errno
		}
		return m
	}
	for _, c := range []struct {
		name   string
		kernel kernel
		do     func(k *kernel, f *fencer) bool
		result bool
		state  uint32
		drains int
		log    []uintptr
	}{
		{
			name:   "asking registers nothing",
			kernel: kernel{known: everything | 1},
			do:     func(_ *kernel, f *fencer) bool { return twice(f.available) },
			result: true, state: fenceOffered, log: []uintptr{query},
		},
		{
			name:   "kernel without the system call",
			kernel: kernel{refuse: refuse(unix.ENOSYS, query, private, register)},
			do:     func(_ *kernel, f *fencer) bool { return f.available() || f.register(f.call) || f.fence() },
			state:  fenceAbsent, log: []uintptr{query, private},
		},
		{
			name:   "kernel that knows the global command only",
			kernel: kernel{known: 1},
			do:     func(_ *kernel, f *fencer) bool { return f.available() },
			state:  fenceAbsent, log: []uintptr{query},
		},
		{
			name:   "registered beforehand",
			kernel: kernel{known: everything},
			do:     func(_ *kernel, f *fencer) bool { return twice(func() bool { return f.register(f.call) }) && f.fence() },
			result: true, state: fenceReady, log: []uintptr{query, register, private, private},
		},
		{
			name:   "the first fence registers",
			kernel: kernel{known: everything},
			do:     func(_ *kernel, f *fencer) bool { return twice(f.fence) },
			result: true, state: fenceReady, log: []uintptr{private, query, register, private, private, private},
		},
		{
			name:   "registered by another goroutine between the failed call and the look",
			kernel: kernel{known: everything, registered: true},
			do: func(k *kernel, f *fencer) bool {
				f.state.Store(fenceReady)
				return f.fenceSlow()
			},
			result: true, state: fenceReady, log: []uintptr{private},
		},
		{
			name:   "registration refused",
			kernel: kernel{known: everything, refuse: refuse(unix.EPERM, register), drains: true},
			do:     func(_ *kernel, f *fencer) bool { return f.register(f.call) },
			state:  fenceLost, log: []uintptr{query, register},
		},
		{
			name:   "refused late: drained, and lost for ever",
			kernel: kernel{known: everything, drains: true},
			do: func(k *kernel, f *fencer) bool {
				ready := f.register(f.call)
				k.refuse = refuse(unix.EPERM, query, private, register)
				first := f.fence() && f.state.Load() == fenceLost
				second := f.fence()
				k.refuse = nil
				third := f.fence()
				return ready && first && second && third && !f.available() && !f.register(f.call)
			},
			result: true, state: fenceLost, drains: 2,
		},
		{
			name:   "out of memory for one call counts as lost",
			kernel: kernel{known: everything, drains: true},
			do: func(k *kernel, f *fencer) bool {
				f.register(f.call)
				k.refuse = refuse(unix.ENOMEM, private)
				return f.fence()
			},
			result: true, state: fenceLost, drains: 1,
		},
		{
			name:   "nothing works",
			kernel: kernel{known: everything},
			do: func(k *kernel, f *fencer) bool {
				f.register(f.call)
				k.refuse = refuse(unix.EPERM, query, private, register)
				return f.fence()
			},
			state: fenceLost, drains: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.kernel
			f := k.fencer()
			if got := c.do(&k, f); got != c.result {
				t.Errorf("result %t, want %t", got, c.result)
			}
			if got := f.state.Load(); got != c.state {
				t.Errorf("state %d, want %d", got, c.state)
			}
			if k.drained != c.drains {
				t.Errorf("drained %d times, want %d", k.drained, c.drains)
			}
			if c.log != nil && !slices.Equal(k.log, c.log) {
				t.Errorf("commands %v, want %v", k.log, c.log)
			}
		})
	}
}

// The state is told before the drain: whoever sees the caller's stores from
// before the fence also sees that the fence is lost.
func TestFenceLostBeforeDrain(t *testing.T) {
	k := kernel{known: everything, refuse: map[uintptr]syscall.Errno{membarrierPrivate: unix.EPERM}}
	f := &fencer{call: k.call}
	during := uint32(fenceUnknown)
	f.drain = func() bool { during = f.state.Load(); return true }
	f.fence()
	if during != fenceLost {
		t.Errorf("state %d while draining, want %d", during, fenceLost)
	}
}

func TestHeavyFencePinned(t *testing.T) {
	if !RegisterHeavyFence() {
		t.Skip("this kernel offers no membarrier")
	}
	rt.Pin()
	ok := HeavyFence()
	rt.Unpin()
	if !ok {
		t.Error("no fence")
	}
}

func TestDrainsPinned(t *testing.T) {
	rt.Pin()
	unmapped, visited := drainByUnmap(), drainByVisit()
	rt.Unpin()
	if !unmapped {
		t.Error("drainByUnmap failed")
	}
	if !visited {
		t.Error("drainByVisit failed")
	}
}

// drainByVisit really moves the thread, and gives it its own CPUs back.
func TestDrainByVisitRestoresAffinity(t *testing.T) {
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skipf("no affinity to compare: %v", err)
	}
	if !drainByVisit() {
		t.Fatal("drainByVisit failed")
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the thread may use CPUs %v afterwards, %v before", after, before)
	}
}

// role tells a child process which part of a test it is.
const role = "ASM_TEST_ROLE"

// startSelf runs one test of this binary in a child process, and returns its
// output. It skips the test where a child cannot run.
func startSelf(t *testing.T, name, part string) string {
	if !HeavyFenceAvailable() {
		t.Skip("this kernel offers no membarrier")
	}
	args := append(strings.Fields(os.Getenv("HQSYNC_EXEC")), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	child := exec.Command(args[0], args[1:]...)
	child.Env = append(os.Environ(), role+"="+part)
	text, err := child.CombinedOutput()
	out := string(text)
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		t.Skipf("HQSYNC_EXEC does not name the emulator that starts %s: %v", os.Args[0], err)
	case strings.Contains(out, cannotFilter):
		t.Skipf("no seccomp filter in a child process: %s", out)
	case err != nil || !strings.Contains(out, childRan):
		t.Fatalf("child: %v\n%s", err, out)
	}
	return out
}

// TestRegistrationTime prints what a package initialisation would cost that
// registers the process.
func TestRegistrationTime(t *testing.T) {
	if os.Getenv(role) == "register" {
		for _, which := range []string{"first", "second"} {
			start := time.Now()
			if !RegisterHeavyFence() {
				t.Error("not registered")
			}
			t.Logf("the %s call takes %v", which, time.Since(start))
		}
		t.Log(childRan)
		return
	}
	t.Log(startSelf(t, "TestRegistrationTime", "register"))
}

// TestFilteredProcess is the late failure for real: a child process registers,
// then installs a seccomp filter that refuses membarrier, and in one case all
// that could replace it.
func TestFilteredProcess(t *testing.T) {
	switch os.Getenv(role) {
	case "membarrier":
		filteredChild(t, true, unix.SYS_MEMBARRIER)
		return
	case "all":
		filteredChild(t, false, unix.SYS_MEMBARRIER, unix.SYS_MUNMAP, unix.SYS_SCHED_SETAFFINITY)
		return
	}
	for _, part := range []string{"membarrier", "all"} {
		t.Run(part, func(t *testing.T) { startSelf(t, "TestFilteredProcess", part) })
	}
}

const (
	cannotFilter = "cannot install a seccomp filter"
	childRan     = "the child has checked everything"
)

func filteredChild(t *testing.T, drains bool, refused ...uint32) {
	if !RegisterHeavyFence() || !HeavyFence() || HeavyFenceLost() {
		t.Fatal("no fence before the filter")
	}
	refuseSyscalls(t, refused...)
	if _, errno := membarrier(membarrierPrivate); errno != unix.EPERM {
		t.Fatalf("membarrier under the filter: %v, want EPERM", errno)
	}
	for range 3 {
		if got := HeavyFence(); got != drains {
			t.Errorf("HeavyFence is %t under the filter, want %t", got, drains)
		}
	}
	if !HeavyFenceLost() || HeavyFenceAvailable() || RegisterHeavyFence() {
		t.Error("the fence does not count as lost")
	}
	t.Log(childRan)
}

// refuseSyscalls makes the kernel answer EPERM to the given calls of every
// thread of the process, for the rest of its life.
func refuseSyscalls(t *testing.T, numbers ...uint32) {
	const returnErrno = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number
	for _, n := range numbers {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: n, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: returnErrno})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}

	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatalf("%s: no_new_privs: %v", cannotFilter, err)
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		t.Fatalf("%s: %v", cannotFilter, errno)
	}
}
