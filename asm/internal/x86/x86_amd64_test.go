//go:build gc && !purego

package x86_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/asm/internal/x86"
	"github.com/klauspost/cpuid/v2"
)

func hypervisor() string {
	signature := x86.Hypervisor()
	return strings.TrimRight(string(signature[:]), "\x00")
}

func TestFeaturesAgreeWithCPUIDModule(t *testing.T) {
	for _, c := range []struct {
		name string
		here bool
		id   cpuid.FeatureID
	}{
		{"RDTSCP", x86.HasRDTSCP(), cpuid.RDTSCP},
		{"WAITPKG", x86.HasWAITPKG(), cpuid.WAITPKG},
		{"INVLPGB", x86.HasINVLPGB(), cpuid.INVLPGB},
	} {
		if there := cpuid.CPU.Has(c.id); c.here != there {
			t.Errorf("%s: %t here, %t by the cpuid module", c.name, c.here, there)
		}
	}
	if got, want := hypervisor(), cpuid.CPU.HypervisorVendorString; got != want {
		t.Errorf("hypervisor %q here, %q by the cpuid module", got, want)
	}
}

// The two features that the cpuid module does not know are compared with the
// kernel's list.
func TestFeaturesAgreeWithKernel(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skipf("no list of CPU flags from the kernel: %v", err)
	}
	flags := regexp.MustCompile(`(?m)^flags\s*:.*$`).FindString(string(text))
	if flags == "" {
		t.Skip("/proc/cpuinfo has no line of flags")
	}
	for _, c := range []struct {
		flag string
		here bool
	}{
		{"rdpid", x86.HasRDPID()},
		{"mwaitx", x86.HasMONITORX()},
		{"rdtscp", x86.HasRDTSCP()},
		{"waitpkg", x86.HasWAITPKG()},
		{"hypervisor", hypervisor() != ""},
	} {
		if there := regexp.MustCompile(`\b` + c.flag + `\b`).MatchString(flags); c.here != there {
			t.Errorf("%s: %t here, %t in /proc/cpuinfo", c.flag, c.here, there)
		}
	}
}
