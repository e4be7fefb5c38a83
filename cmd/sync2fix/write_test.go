package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tempFiles returns what a run should not leave behind.
func tempFiles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".sync2fix-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWriteAll_KeepsPermissions(t *testing.T) {
	dir := t.TempDir()
	modes := map[string]fs.FileMode{"a.go": 0o600, "b.go": 0o755, "c.go": 0o664, "d.go": 0o200}
	var edits []edit
	for name, mode := range modes {
		write(t, filepath.Join(dir, name), "old")
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
		edits = append(edits, edit{name, []byte("old"), []byte("new")})
	}
	if err := writeAll(dir, edits); err != nil {
		t.Fatal(err)
	}
	for name, mode := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
	if got := read(t, filepath.Join(dir, "a.go")); got != "new" {
		t.Errorf("a.go holds %q", got)
	}
}

func TestWriteAll_OneObstacleStopsAll(t *testing.T) {
	for name, obstruct := range map[string]func(path string) error{
		"file is gone":      os.Remove,
		"directory is gone": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"file is read-only": func(path string) error { return os.Chmod(path, 0o444) },
		"file is a link": func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
		"file is a directory": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			last := filepath.Join(dir, "sub", "z.go")
			if err := os.Mkdir(filepath.Dir(last), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "a.go"), "old")
			write(t, last, "old")
			if err := obstruct(last); err != nil {
				t.Fatal(err)
			}
			err := writeAll(dir, []edit{{"a.go", []byte("old"), []byte("new")}, {"sub/z.go", []byte("old"), []byte("new")}})
			if err == nil || !strings.Contains(err.Error(), "z.go") || !strings.HasPrefix(err.Error(), "nothing written: ") {
				t.Errorf("error %v; it should name z.go and say that nothing was written", err)
			}
			if got := read(t, filepath.Join(dir, "a.go")); got != "old" {
				t.Errorf("a.go was changed to %q", got)
			}
			if left := append(tempFiles(t, dir), tempFiles(t, filepath.Dir(last))...); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestMoveAll_FailureHalfWayIsUndone(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a.go", "b.go", "c.go"}
	var edits []edit
	for _, name := range names {
		write(t, filepath.Join(dir, name), "old "+name)
		edits = append(edits, edit{name, []byte("old " + name), []byte("new")})
	}
	stage, err := stageAll(dir, edits)
	if err != nil {
		t.Fatal(err)
	}
	// Between staging and moving, somebody puts a directory where c.go was.
	if err := os.Remove(filepath.Join(dir, "c.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "c.go", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := moveAll(stage); err == nil || !strings.Contains(err.Error(), "c.go") {
		t.Errorf("error %v; it should name c.go", err)
	}
	discard(stage)
	for _, name := range names[:2] {
		if got := read(t, filepath.Join(dir, name)); got != "old "+name {
			t.Errorf("%s holds %q afterwards", name, got)
		}
	}
	if left := tempFiles(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
