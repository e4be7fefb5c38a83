package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/numatest"
)

const emulator = "qemu-system-x86_64"

const nodeMemory = 384 // MiB

// The machine: on each NUMA node a socket of two cores under one last-level
// cache. From each node the others are at distances of their own.

var machine = numatest.Machine{
	CPUs: []string{"0-1", "2-3", "4-5", "6-7"},
	Distances: [][]int{
		{10, 12, 20, 30},
		{12, 10, 30, 20},
		{20, 30, 10, 12},
		{30, 20, 12, 10},
	},
}

func findEmulator() error {
	if _, err := exec.LookPath(emulator); err != nil {
		return fmt.Errorf("%s is %w: apt-get install qemu-system-x86", emulator, errUnavailable)
	}
	return nil
}

// arguments returns the emulator's.
func arguments(kernel, initramfs, log string) []string {
	args := []string{
		"-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults", "-display", "none", "-no-reboot",
		"-m", fmt.Sprint(len(machine.CPUs) * nodeMemory),
		"-smp", fmt.Sprintf("sockets=%d,cores=2", len(machine.CPUs)),
		"-kernel", kernel, "-initrd", initramfs,
		"-append", "console=ttyS0 loglevel=4 panic=-1 " + clock() + " mitigations=off rdinit=/init",
		"-serial", "file:" + log, "-serial", "stdio",
	}
	for n, cpus := range machine.CPUs {
		args = append(args,
			"-object", fmt.Sprintf("memory-backend-ram,id=memory%d,size=%dM", n, nodeMemory),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=memory%d,cpus=%s", n, n, cpus))
	}
	for n, row := range machine.Distances {
		for to, d := range row {
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", n, to, d))
		}
	}
	return args
}

// clock returns what the kernel is told about its clock. The emulated time stamp
// counters are the host's and agree. Their rate is the host's too: a kernel that finds
// it out on a busy host by itself is wrong by a factor, and then all times end too
// early, or late, by that factor.
func clock() string {
	const khz = 1000 // of a rate in ticks per microsecond
	return fmt.Sprintf("tsc=reliable tsc_early_khz=%d", asm.TicksPerMicrosecond()*khz)
}

// boot runs the machine until it switches itself off, and gives each line of its
// second serial line to v. What the kernel said is in the error.
func boot(ctx context.Context, kernel, initramfs string, v *verdict) error {
	log := initramfs + ".log"
	cmd := exec.CommandContext(ctx, emulator, arguments(kernel, initramfs, log)...)
	cmd.WaitDelay = 10 * time.Second
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		v.line(strings.TrimRight(line, "\r\n"))
	}
	if err != io.EOF {
		complaint.WriteString(err.Error())
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil && v.done {
		return nil
	}
	said, _ := os.ReadFile(log)
	return fmt.Errorf("the machine did not get to its end: %v\n%s%s", err, complaint.String(), said)
}
