//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/internal/race"
)

// childEnv makes this test binary a child that does what its value says.
const childEnv = "HQSYNC_HQ_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "tunables":
		Load()
		fmt.Printf("%d domains, local %d, budget %v\n", realDomains(), CurrentTunables().Local, CurrentTunables().Budget)
	case "no system calls":
		withoutSystemCalls()
	case "clock without system calls":
		clockWithoutSystemCalls()
	}
}

// child runs this binary, behind the command in HQSYNC_EXEC if the binary is for
// another machine than this one, and returns what it prints.
func child(t *testing.T, what string, environment ...string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append(strings.Fields(os.Getenv("HQSYNC_EXEC")), self)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), environment...), childEnv+"="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestEnvironment(t *testing.T) {
	out, err := child(t, "tunables", "SYNC2=topology=3x2,hq.local=7,hq.budget=25us")
	if want := "3 domains, local 7, budget 25µs\n"; err != nil || out != want {
		t.Errorf("printed %q, %v, want %q", out, err, want)
	}
	if out, err = child(t, "tunables", "SYNC2=topology=3x2,domains=none"); !strings.HasPrefix(out, "1 domains, local 128,") || err != nil {
		t.Errorf("printed %q, %v", out, err)
	}
}

// A thread whose next system call would end the process takes a contended lock many
// times, in both modes, pinned all the time.
func TestPinnedWaitsMakeNoSystemCall(t *testing.T) {
	if os.Getenv("HQSYNC_EXEC") != "" {
		t.Skip("the emulator makes system calls of its own")
	}
	if race.Enabled {
		t.Skip("the race detector makes system calls of its own")
	}
	if _, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
		t.Skipf("no seccomp here: %v", err)
	}
	if out, err := child(t, "clock without system calls"); err != nil {
		source, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
		t.Skipf("reading the clock is a system call here, with clock source %s: the child printed %q and ended with %v",
			strings.TrimSpace(string(source)), out, err)
	}
	if out, err := child(t, "no system calls", "SYNC2=topology=2x4"); err != nil || !strings.HasSuffix(out, "done\n") {
		t.Errorf("the child printed %q and ended with %v", out, err)
	}
	// The same with a system call in the section, to see that it would be noticed.
	if out, err := child(t, "no system calls", "SYNC2=topology=2x4", "HQSYNC_HQ_BREAK=1"); err == nil {
		t.Errorf("a system call was not noticed: the child printed %q", out)
	}
}

// clockWithoutSystemCalls does nothing but look at the clock in a thread whose next
// system call would end the process.
func clockWithoutSystemCalls() {
	runtime.GOMAXPROCS(2) // one of them is pinned for good
	go func() {
		runtime.LockOSThread()
		pin()
		if err := forbidSystemCalls(); err != nil {
			panic(err)
		}
		for begin := nanotime(); nanotime()-begin < int64(50*time.Millisecond); {
			pause(5)
		}
		looked.Store(1)
		//lint:ignore SA5002 it must neither unpin nor end without a system call
		for {
		}
	}()
	for looked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	unix.Exit(0)
}

var looked atomic.Uint32

func withoutSystemCalls() {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(8)
	Load()
	u := defaults.tuning()
	u.handOvers, u.crossings, u.streak, u.votes = 0, 0, 0, 1
	u.budget = int64(10 * time.Minute) // nobody sleeps: to sleep, and to wake a sleeper, takes system calls
	inForce.Store(&u)
	breaks := os.Getenv("HQSYNC_HQ_BREAK") != ""
	l := new(Lock)
	var taken, stop atomic.Uint32
	for range 3 {
		go func() {
			for stop.Load() == 0 {
				l.Lock()
				pause(50)
				l.Unlock()
			}
		}()
	}
	go func() {
		runtime.LockOSThread()
		pin()
		if err := forbidSystemCalls(); err != nil {
			panic(err)
		}
		for range 2000 {
			l.LockPinned()
			pause(5)
			l.UnlockPinned()
			if breaks {
				unix.Getpid()
			}
			taken.Add(1)
		}
		//lint:ignore SA5002 it must neither unpin nor end without a system call
		for {
		}
	}()
	for begin := time.Now(); taken.Load() < 2000; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 50*time.Second {
			fmt.Printf("the lock was taken %d times\n", taken.Load())
			unix.Exit(1)
		}
	}
	fmt.Println("done")
	unix.Exit(0)
}
