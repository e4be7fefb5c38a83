package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestService_Interrupted_LeavesNothing: no generator, and no port.
func TestService_Interrupted_LeavesNothing(t *testing.T) {
	for sub, kind := range generators {
		t.Run(sub, func(t *testing.T) {
			needs(t, kind)
			cmd := process(t, "service", sub, "-workers", "4", "-d", "30s", "-o", t.TempDir())
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			child, port := longGenerator(t, cmd.Process.Pid, kind.Generator)
			if !answers(port) {
				t.Errorf("port %d does not answer while the service runs", port)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				_ = cmd.Process.Kill()
				t.Fatal("still runs 20 s after the interrupt")
			}
			if status := cmd.ProcessState.ExitCode(); status != exitInterrupted || !strings.Contains(out.String(), "interrupted") {
				t.Errorf("status %d, want %d\n%s", status, exitInterrupted, out.String())
			}
			if err := syscall.Kill(child, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s (process %d) is still there: %v", kind.Generator, child, err)
			}
			if answers(port) {
				t.Errorf("port %d still answers", port)
			}
		})
	}
}

func answers(port int) bool {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		c.Close()
	}
	return err == nil
}

// portOf finds the port in the command line of a generator.
var portOf = regexp.MustCompile(`-p\x00(\d+)\x00|http://127\.0\.0\.1:(\d+)/`)

// longGenerator waits for a generator that runs for longer than the first, short round.
func longGenerator(t *testing.T, parent int, name string) (pid, port int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for since, last := time.Now(), 0; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		pid, line := childOf(parent, name)
		if pid != last {
			since, last = time.Now(), pid
		}
		match := portOf.FindStringSubmatch(line)
		if pid == 0 || match == nil || time.Since(since) < 1500*time.Millisecond {
			continue
		}
		port, err := strconv.Atoi(match[1] + match[2])
		if err != nil {
			t.Fatal(err)
		}
		return pid, port
	}
	t.Fatalf("no %s ran for long below process %d", name, parent)
	return 0, 0
}

// childOf returns the process of that name among the children of the parent's threads, and its command line.
func childOf(parent int, name string) (pid int, line string) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if strings.HasPrefix(string(command), name) {
				pid, _ = strconv.Atoi(field)
				return pid, string(command)
			}
		}
	}
	return 0, ""
}
