//go:build !linux

package topology

// readMachine knows the number of CPUs and nothing else.
func readMachine() (machine, error) {
	m := oneNode("runtime", firstCPUs())
	describe(&m)
	return m, nil
}
