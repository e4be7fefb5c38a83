package asm

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	yieldCPU = func() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
	bindTo = func(side int) (undo func()) {
		var own, one unix.CPUSet
		if unix.SchedGetaffinity(0, &own) != nil || own.Count() < 2 {
			return func() {}
		}
		cpu := 0
		for skip := side; !own.IsSet(cpu) || skip > 0; cpu++ {
			if own.IsSet(cpu) {
				skip--
			}
		}
		one.Set(cpu)
		if unix.SchedSetaffinity(0, &one) != nil {
			return func() {}
		}
		return func() { unix.SchedSetaffinity(0, &own) }
	}
}
