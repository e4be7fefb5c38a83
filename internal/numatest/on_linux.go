package numatest

import (
	"fmt"
	"iter"
	"runtime"

	"golang.org/x/sys/unix"
)

// On runs f in the calling goroutine, on one of the given CPUs. If the system
// does not allow that it returns an error and has not run f.
func On(cpus iter.Seq[int], f func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, here unix.CPUSet
	for cpu := range cpus {
		here.Set(cpu)
	}
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("numatest: affinity of the thread: %w", err)
	}
	if err := unix.SchedSetaffinity(0, &here); err != nil {
		return fmt.Errorf("numatest: cannot move to the CPUs %v: %w", here, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	f()
	return nil
}
