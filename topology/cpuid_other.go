//go:build !amd64

package topology

// describe has nothing to add. Package cpuid reads files when it is imported on
// some of these architectures, which this package must not cause.
func describe(*machine) {}
