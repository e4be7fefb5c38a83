package topology

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"
)

// describe adds what the CPU says about itself where sysfs is silent. Which CPUs
// share a cache could be found out only by moving a thread over all of them,
// which is no business of a library; it stays unknown.
func describe(m *machine) {
	m.model = cpuid.CPU.BrandName
	if m.cacheLine == Unknown && cpuid.CPU.CacheLine > 0 {
		m.cacheLine = cpuid.CPU.CacheLine
	}
	for i, size := range []int{cpuid.CPU.Cache.L1D, cpuid.CPU.Cache.L2, cpuid.CPU.Cache.L3} {
		if size > 0 && len(m.llcs) == 0 {
			m.features = append(m.features, fmt.Sprintf("L%d=%dK", i+1, size>>10))
		}
	}
	for _, f := range []cpuid.FeatureID{cpuid.HYPERVISOR, cpuid.RDTSCP, cpuid.WAITPKG, cpuid.HYBRID_CPU} {
		if cpuid.CPU.Supports(f) {
			m.features = append(m.features, f.String())
		}
	}
}
