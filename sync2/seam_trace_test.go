package sync2_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	ofSimulator = regexp.MustCompile(`hqsync/internal/sim\.|\.mutant\b|\.asymmetric\b|\.storePlain\b`)
	function    = regexp.MustCompile(`(?m)^TEXT (\S+)`)
)

// TestSeam_LeavesNoTraceInTheDefaultBuild disassembles a program: what Lock and
// Unlock are made of contains nothing of the simulator's, nor a call of a
// function that only the seam is there for.
func TestSeam_LeavesNoTraceInTheDefaultBuild(t *testing.T) {
	g := needGo(t)
	if raceEnabled || !flavour.inlinesLock {
		t.Skipf("not promised by the %s build with race detector %v", flavour.name, raceEnabled)
	}
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			m := g.program(t, ours, "inline.go")
			env := []string{"GOARCH=" + arch, "CGO_ENABLED=0"}
			tool := func(args ...string) string {
				t.Helper()
				r := m.run(t, 5*time.Minute, env, args...)
				if r.exit != 0 {
					t.Fatalf("go %q: %v", args, r)
				}
				return r.stdout
			}
			tool(append(append([]string{"build", "-o", "traced"}, buildFlags()...), ".")...)
			for symbol := range strings.Lines(tool("tool", "nm", "traced")) {
				if strings.Contains(symbol, "hqsync/internal/sim.") {
					t.Errorf("a symbol of the simulator: %s", symbol)
				}
			}
			text := tool("tool", "objdump", "-s", `sync2\.\(\*(Mutex|RWMutex|WaitGroup)\)|^main\.main$`, "traced")
			if n := len(function.FindAllString(text, -1)); n < 3 || !strings.Contains(text, "Mutex).lockSlow") {
				t.Fatalf("%d functions are disassembled, and not those that are wanted", n)
			}
			for line := range strings.Lines(text) {
				if ofSimulator.MatchString(line) {
					t.Errorf("of the seam: %s", line)
				}
			}
		})
	}
}
