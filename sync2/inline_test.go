package sync2_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mustInline are the methods whose call would cost more than their work.
var mustInline = []string{"(*Mutex).Lock", "(*RWMutex).RLock", "(*RWMutex).RUnlock"}

// TestFastPathsInline asks the compiler, for each architecture of the native build. What inlines beyond mustInline is
// logged; whether the rest is no slower than package sync is for the benchmarks to say.
func TestFastPathsInline(t *testing.T) {
	g := needGo(t)
	if raceEnabled {
		t.Skip("with the race detector nothing is meant to inline")
	}
	if !flavour.inlinesLock {
		t.Skipf("not promised by the %s build", flavour.name)
	}
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			inlined := inlinedCalls(t, g, arch)
			for _, method := range mustInline {
				if !slices.Contains(inlined, method) {
					t.Errorf("%s does not inline; what does is %q", method, inlined)
				}
			}
			t.Logf("inlined: %q", inlined)
		})
	}
}

var inlinedCall = regexp.MustCompile(`main\.go:\d+:\d+: inlining call to (?:sync2?)\.(\S+)`)

func inlinedCalls(t *testing.T, g *goTool, arch string) (methods []string) {
	t.Helper()
	m := g.program(t, ours, "inline.go")
	args := append(append([]string{"build", "-gcflags=-m"}, buildFlags()...), ".")
	r := m.run(t, 5*time.Minute, []string{"GOARCH=" + arch, "CGO_ENABLED=0"}, args...)
	if r.exit != 0 || !strings.Contains(r.stderr, "main.go") {
		t.Fatalf("go build -gcflags=-m: %v", r)
	}
	for _, match := range inlinedCall.FindAllStringSubmatch(r.stderr, -1) {
		methods = append(methods, match[1])
	}
	return methods
}
