package sync2_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestVetReportsTheSameCopiesAsOfPackageSync runs vet's copylocks check on a program that copies each type in each way.
func TestVetReportsTheSameCopiesAsOfPackageSync(t *testing.T) {
	g := needGo(t)
	t.Parallel()
	want, got := copiesReported(t, g, control), copiesReported(t, g, ours)
	if len(want) < 19 {
		t.Fatalf("vet reports only %d lines of the control: %v", len(want), want)
	}
	for _, line := range slices.Sorted(maps.Keys(want)) {
		if want[line] != got[line] {
			t.Errorf("line %s: vet says %q on sync2 and %q on package sync", line, got[line], want[line])
		}
	}
	for line, text := range got {
		if want[line] == "" {
			t.Errorf("line %s: vet says %q on sync2 only", line, text)
		}
	}
}

var (
	vetLine = regexp.MustCompile(`main\.go:(\d+):\d+: (.*)`)
	// lockPath says by which fields a type contains a lock: "generated.test/program.holder contains sync.Mutex". Where the
	// path goes inside the types of the two packages it may differ.
	lockPath = regexp.MustCompile(`((?:sync2?|generated\.test/program)\.\w+)( contains .*)?$`)
)

// copiesReported returns what vet says by line, without what lies inside the types.
func copiesReported(t *testing.T, g *goTool, s subject) map[string]string {
	t.Helper()
	m := g.program(t, s, "copylocks.go")
	r := m.run(t, 5*time.Minute, nil, append([]string{"vet", "-copylocks"}, append(buildFlags(), ".")...)...)
	lines := map[string]string{}
	for _, match := range vetLine.FindAllStringSubmatch(r.stderr, -1) {
		text := strings.ReplaceAll(match[2], sync2Path, syncPath)
		text = lockPath.ReplaceAllString(text, "$1")
		lines[match[1]] += text + "\n"
	}
	if r.exit == 0 || len(lines) == 0 {
		t.Fatalf("vet found nothing: %v", r)
	}
	return lines
}
