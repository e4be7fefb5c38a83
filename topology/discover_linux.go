package topology

import (
	"os"

	"golang.org/x/sys/unix"
)

// readMachine reads this machine. Together with an error it returns what is
// known without sysfs.
func readMachine() (machine, error) {
	allowed := affinity()
	m, err := readTree(os.DirFS("/"), allowed)
	if err != nil {
		if allowed.Empty() {
			allowed = firstCPUs()
		}
		m = oneNode("affinity", allowed)
	}
	describe(&m)
	return m, err
}

// affinity returns the CPUs that the main thread may run on and that are online;
// empty if the kernel does not say. Other threads inherit them unless the program
// confines a thread of its own, which is no reason to forget the other CPUs.
func affinity() Set {
	mask := unix.NewCPUSet(MaxCPU + 1)
	if unix.SchedGetaffinityDynamic(os.Getpid(), mask) != nil {
		return Set{}
	}
	var s Set
	for cpu := range MaxCPU + 1 {
		if mask.IsSet(cpu) {
			s.addRange(cpu, cpu)
		}
	}
	return s
}
