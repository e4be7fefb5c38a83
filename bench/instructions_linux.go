package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// steppedEnv makes this program the child that is counted: OPERATION/IMPLEMENTATION.
const steppedEnv = "HQSYNC_BENCH_STEPPED"

// The child marks the stretches to count by a signal to itself: before and after one operation, then before and after
// two. What marking costs, and the call of the loop, is in both; the difference is one operation. It repeats that until
// it is killed. A goroutine that has been running for 10 ms is told to give way at its next call, and then a stretch
// counts the scheduler; so it begins a new time slice before each, and stretches that are too long are not counted.
const (
	marker    = syscall.SIGUSR1
	enough    = 3   // of each stretch
	mostTries = 500 // for all of them, on a machine that is too busy
	tooLong   = 1000
	stretches = 2
)

// In init the goroutine of main is on the thread that the parent traces, and stays there if it says so now.
func init() {
	name := os.Getenv(steppedEnv)
	if name == "" {
		return
	}
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	op, arm, _ := strings.Cut(name, "/")
	for _, o := range countedOperations {
		if o.name == op {
			do := o.arms[arm]
			do(100)
			for {
				for n := 1; n <= stretches; n++ {
					runtime.Gosched()
					mark()
					do(n)
					mark()
				}
			}
		}
	}
	os.Exit(3)
}

func mark() {
	syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(marker))
}

// countInstructions runs a child and counts.
func countInstructions(op, arm string) (count, error) {
	runtime.LockOSThread() // a child is traced by a thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return count{}, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), steppedEnv+"="+op+"/"+arm, "GODEBUG=asyncpreemptoff=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return count{}, fmt.Errorf("cannot trace a child: %w", err)
	}
	c, err := countChild(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	return c, err
}

// countChild follows the child from its exec until it has been counted.
func countChild(pid int) (count, error) {
	t := tracee{pid: pid}
	if _, err := t.wait(); err != nil { // the exec
		return count{}, err
	}
	var least [stretches]count
	var counted [stretches]int
	for i := 0; counted[0] < enough || counted[1] < enough; i++ {
		if i == mostTries {
			return count{}, errors.New("the machine is too busy: no stretch was counted without the scheduler")
		}
		if err := t.toMarker(); err != nil {
			return count{}, err
		}
		c, err := t.stepToMarker()
		if err != nil {
			return count{}, err
		}
		n := i % stretches
		if c.all >= tooLong {
			continue
		}
		if counted[n] == 0 || c.all < least[n].all {
			least[n] = c
		}
		counted[n]++
	}
	c := count{least[1].all - least[0].all, least[1].locked - least[0].locked}
	if !locksKnown {
		c.locked = -1
	}
	return c, nil
}

type tracee struct{ pid int }

var errEnded = errors.New("the child ended before it was counted")

// wait returns the signal that stopped the child.
func (t tracee) wait() (syscall.Signal, error) {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(t.pid, &status, syscall.WALL, nil); err != nil {
		return 0, err
	}
	if !status.Stopped() {
		return 0, errEnded
	}
	return status.StopSignal(), nil
}

// toMarker lets the child run to the next marker. The marker is not delivered, everything else is.
func (t tracee) toMarker() error {
	for deliver := 0; ; {
		if err := syscall.PtraceCont(t.pid, deliver); err != nil {
			return err
		}
		signal, err := t.wait()
		if err != nil || signal == marker {
			return err
		}
		deliver = int(signal)
	}
}

// stepToMarker counts what the child executes up to the next marker, or lets it run there when that is too much.
func (t tracee) stepToMarker() (c count, err error) {
	for c.all < tooLong {
		if locksKnown {
			locked, err := t.atLocked()
			if err != nil {
				return c, err
			}
			if locked {
				c.locked++
			}
		}
		if err := syscall.PtraceSingleStep(t.pid); err != nil {
			return c, err
		}
		signal, err := t.wait()
		if err != nil || signal == marker {
			return c, err
		}
		c.all++
	}
	return c, t.toMarker()
}

// locksKnown: other architectures have no prefix that tells.
const locksKnown = runtime.GOARCH == "amd64"

// atLocked reports whether the next instruction of the child is a locked one: it has a lock prefix, or is an exchange
// with memory.
func (t tracee) atLocked() (bool, error) {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(t.pid, &regs); err != nil {
		return false, err
	}
	code := make([]byte, 8)
	if _, err := syscall.PtracePeekText(t.pid, uintptr(regs.PC()), code); err != nil {
		return false, err
	}
	const lock, rex, rexMask = 0xf0, 0x40, 0xf0
	if code[0] == lock {
		return true, nil
	}
	if code[0]&rexMask == rex {
		code = code[1:]
	}
	exchange := code[0] == 0x86 || code[0] == 0x87
	return exchange && code[1] < 0xc0, nil // from 0xc0 on the operand is a register
}
