package workload_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write package ours anew from package std")

// changeImport does to a file of package std what a user of sync2 does, and names the package.
var changeImport = strings.NewReplacer(
	"// Package std has the workloads on package sync.", "// Package ours has the workloads on package sync2.",
	"package std\n", "package ours\n",
	`	"sync"`, `	sync "github.com/hqsync/hqsync/sync2"`,
)

const generated = "// Code generated from ../std by go test ./internal/workload -update; DO NOT EDIT.\n\n"

func TestOursIsStdWithOneImportChanged(t *testing.T) {
	files, err := filepath.Glob("std/*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files in std (%v), want at least 5", len(files), err)
	}
	imports := 0
	for _, file := range files {
		if filepath.Base(file) == "call.go" {
			continue // says in each package how a function is called under the lock
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := generated + changeImport.Replace(string(text))
		imports += strings.Count(want, `sync "github.com/hqsync/hqsync/sync2"`)
		copied := filepath.Join("ours", filepath.Base(file))
		if *update {
			if err := os.WriteFile(copied, []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(copied); err != nil || string(got) != want {
			t.Errorf("%s is not %s with the import changed (%v); run go test ./internal/workload -update", copied, file, err)
		}
	}
	if imports != 6 {
		t.Errorf("%d files import sync2, want 6", imports)
	}
}

// TestLockIsInlined_InBothCopies: the measured loop of the uncontended cells holds the lock's fast path itself. Only
// Lock is promised to inline in sync2; if Unlock, RLock or RUnlock become calls, their cost is sync2's own.
func TestLockIsInlined_InBothCopies(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command to ask the compiler what it inlined")
	}
	cmd := exec.Command(goTool, "build", "-tags="+buildTags(), "-gcflags=-m", "./std", "./ours")
	cmd.Env = append(os.Environ(), "GOARCH="+runtime.GOARCH, "GOOS="+runtime.GOOS)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%.2000s", err, out)
	}
	for copied, pkg := range map[string]string{"std": "sync", "ours": "sync2?"} {
		inlined := regexp.MustCompile(`(?m)` + copied + `/mutex\.go:\d+:\d+: inlining call to ` + pkg + `\.\(\*Mutex\)\.Lock$`)
		if n := len(inlined.FindAll(out, -1)); n < 3 {
			t.Errorf("Lock was inlined at %d places of %s/mutex.go, want 3", n, copied)
		}
	}
}

// buildTags returns the tags that this test was built with.
func buildTags() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}
