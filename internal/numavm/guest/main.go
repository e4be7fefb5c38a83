//go:build linux

// Command guest is the first process of the machine that numavm boots: it runs
// the jobs of [plan.File], tells how each ended, and switches the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/internal/numavm/plan"
)

// console is the serial line that reaches the host; the kernel has another one.
const console = "/dev/ttyS1"

func main() {
	if err := run(); err != nil {
		fmt.Println("numavm: guest:", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() error {
	if err := mount(); err != nil {
		return err
	}
	out, err := os.OpenFile(console, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	text, err := os.ReadFile("/" + plan.File)
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	for _, job := range p.Jobs {
		fmt.Fprintln(out, plan.Begin(job.Name))
		begin := time.Now()
		status := start(job, out)
		fmt.Fprintln(out, plan.End(job.Name, status, time.Since(begin)))
	}
	fmt.Fprintln(out, plan.Done)
	return unix.IoctlSetInt(int(out.Fd()), unix.TCSBRK, 1) // wait until all of it has left
}

// mount makes the file systems that the tests look at.
func mount() error {
	for _, m := range []struct{ kind, dir string }{
		{"devtmpfs", "/dev"},
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"tmpfs", "/tmp"},
		{"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.dir, err)
		}
	}
	return nil
}

// start runs a job to its end and returns its exit status, -1 if it had none.
func start(job plan.Job, out *os.File) int {
	cmd := exec.Command(job.Command[0], job.Command[1:]...)
	cmd.Dir = job.Dir
	cmd.Env = append([]string{"HOME=/tmp", "PATH=/bin"}, job.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(out, "numavm: guest:", err)
		return -1
	}
	return cmd.ProcessState.ExitCode()
}
