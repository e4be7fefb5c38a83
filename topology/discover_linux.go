package topology

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// readMachine reads this machine.
func readMachine() (machine, error) {
	m, err := readRoot(os.DirFS("/"), affinity())
	describe(&m)
	return m, err
}

// readRoot reads a tree as readTree does. Together with an error it returns what
// is known without the tree.
func readRoot(tree fs.FS, allowed Set) (machine, error) {
	m, err := readTree(tree, allowed)
	if err == nil {
		return m, nil
	}
	if allowed.Empty() {
		allowed = firstCPUs()
	}
	return oneNode("affinity", allowed), err
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
