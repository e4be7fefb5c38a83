package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newModule writes a module with one file that imports sync and returns its root.
func newModule(t *testing.T, gofile string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "m.go"), gofile)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const lockGo = "package m\n\nimport \"sync\"\n\nvar mu sync.Mutex\n"

func TestExitStatusAndMessage(t *testing.T) {
	good := newModule(t, lockGo)
	broken := newModule(t, "package m\n\nimport \"sync\"\n\nfunc {\n")
	empty := t.TempDir()
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		stderr string // pattern for all of it
	}{
		{"no DIR", nil, exitUsage, `sync2fix: expected "<DIR>" \(sync2fix -h explains\)`},
		{"two DIRs", []string{good, good}, exitUsage, `sync2fix: unexpected argument .* \(sync2fix -h explains\)`},
		{"unknown flag", []string{"-w", good}, exitUsage, `sync2fix: unknown flag -w.*`},
		{"unknown long flag", []string{"-write", good}, exitUsage, `sync2fix: unknown flag --write.*`},
		{"-undo and -replace", []string{"-undo", "-replace", good, good}, exitUsage, `sync2fix: --undo and --replace can't be used together.*`},
		{"-replace without PATH", []string{good, "-replace"}, exitUsage, `sync2fix: --replace: expected string value.*`},
		{"-replace with nothing", []string{"-replace=", good}, exitFailed, `sync2fix: -replace: PATH is empty`},
		{"not there", []string{filepath.Join(empty, "x")}, exitFailed, `sync2fix: .*x: no such file or directory`},
		{"no go.mod", []string{empty}, exitFailed, `sync2fix: .* is not the root of a module: it has no go.mod`},
		{"a file", []string{filepath.Join(good, "m.go")}, exitFailed, `sync2fix: .*m.go is not a directory; DIR is the directory that holds go.mod`},
		{"does not parse", []string{broken}, exitFailed, `sync2fix: .*m.go:5:6: .*\nsync2fix: nothing written: errors in 1 file`},
		{"preview", []string{"-n", good}, exitDone, `sync2fix: would rewrite 1 import of sync in 1 file of example.com/m`},
		{"rewrite", []string{"--", good}, exitDone, `sync2fix: rewrote 1 import of sync in 1 file of example.com/m\n(.*\n)*.*`},
		{"again", []string{good}, exitDone, `sync2fix: nothing to rewrite: no import of sync in the 1 Go file of example.com/m`},
		{"undo", []string{"-undo", good}, exitDone, `sync2fix: rewrote 1 import of github.com/hqsync/hqsync/sync2 in 1 file of example.com/m`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(tt.args, &stdout, &stderr); status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			if !regexp.MustCompile(`^` + tt.stderr + `\n$`).MatchString(stderr.String()) {
				t.Errorf("stderr is\n%swant a match of\n%s", stderr.String(), tt.stderr)
			}
			if tt.status != exitDone && stdout.Len() > 0 {
				t.Errorf("a refused run prints %q on stdout", stdout.String())
			}
		})
	}
	if got := read(t, filepath.Join(good, "m.go")); got != lockGo {
		t.Errorf("after rewrite and undo the file is %q", got)
	}
}

func TestHelpIsTheManual(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-h"}, &stdout, &stderr); status != exitDone || stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %q", status, stderr.String())
	}
	for _, want := range []string{
		"Usage: sync2fix <DIR> [flags]\n", "go:linkname", "testdata", "vendor", "# Limits", "# Exit status", "must both be\nrewritten",
		"-n, --dry-run", "--undo", "--replace=PATH",
	} {
		if !strings.Contains(strings.ReplaceAll(stdout.String(), "\n", " "), strings.ReplaceAll(want, "\n", " ")) {
			t.Errorf("-h does not say %q", want)
		}
	}
	manual := manual()
	for _, flag := range []string{"-n", "-undo", "-replace PATH"} {
		if !strings.Contains(manual, flag) {
			t.Errorf("the manual does not mention %s", flag)
		}
	}
}
