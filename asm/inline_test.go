package asm_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestInlining pins what the callers' fast paths count on: the stores and the
// load inline, at a small part of the budget of 80. It compiles for both
// architectures, whichever it runs on.
func TestInlining(t *testing.T) {
	const most = 25
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to compile with: %v", err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			build := exec.Command(goCommand, "build", "-gcflags=-m=2", ".")
			build.Env = append(build.Environ(), "GOARCH="+arch, "GOFLAGS=")
			out, err := build.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, name := range []string{"StoreRelease32", "StoreRelease64", "LoadAcquire32"} {
				found := regexp.MustCompile(`can inline ` + name + ` with cost (\d+) `).FindSubmatch(out)
				if found == nil {
					t.Errorf("%s does not inline", name)
					continue
				}
				cost, _ := strconv.Atoi(string(found[1]))
				if cost > most {
					t.Errorf("%s inlines at a cost of %d, more than %d", name, cost, most)
				}
				t.Logf("%s inlines at a cost of %d", name, cost)
			}
		})
	}
}
