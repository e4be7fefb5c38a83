package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBenchmarks_AreTheFamilies asks this test binary for its benchmarks: one for each family of cells that a command
// measures, so that go test -bench and the commands speak of the same.
func TestBenchmarks_AreTheFamilies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, "-test.list", "^Benchmark").Output()
	if err != nil {
		t.Fatal(err)
	}
	var listed, wanted []string
	for line := range strings.Lines(string(out)) {
		listed = append(listed, strings.TrimPrefix(strings.TrimSpace(line), "Benchmark"))
	}
	for _, spec := range everyTable() {
		for _, c := range spec.cells {
			if !c.timed && !slices.Contains(wanted, c.family()) {
				wanted = append(wanted, c.family())
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(wanted)
	if !slices.Equal(listed, wanted) {
		t.Errorf("benchmarks %v, families of cells %v: want the same", listed, wanted)
	}
}
