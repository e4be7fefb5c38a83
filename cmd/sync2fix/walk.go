package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A module is the part of a module's source tree that the go command builds.
type module struct {
	root      string // absolute, without symbolic links
	gomod     *modfile.File
	gomodText []byte
	files     []string // Go files, as slash-separated paths relative to root
	skipped   []skip
}

// A skip is something in the tree that holds Go files and is left alone.
type skip struct {
	path   string // relative to root
	reason string
}

// loadModule finds the files of the module whose root directory is dir.
func loadModule(dir string) (*module, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; DIR is the directory that holds go.mod", dir)
	}
	m := &module{root: root}
	m.gomodText, err = os.ReadFile(filepath.Join(root, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the root of a module: it has no go.mod", dir)
	}
	if err != nil {
		return nil, err
	}
	m.gomod, err = modfile.Parse(filepath.Join(dir, "go.mod"), m.gomodText, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case m.gomod.Module == nil:
		return nil, fmt.Errorf("%s has no module line", filepath.Join(dir, "go.mod"))
	case m.gomod.Module.Mod.Path == hqsync:
		return nil, fmt.Errorf("%s is %s itself, which sync2 is built from", dir, hqsync)
	}
	return m, m.walk()
}

func (m *module) walk() error {
	return filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == m.root {
			return err
		}
		rel, err := filepath.Rel(m.root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		reason := m.leaveAlone(rel, entry)
		switch {
		case entry.IsDir() && reason != "":
			m.skipped = append(m.skipped, skip{rel, reason})
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(rel, ".go"):
		case reason != "":
			m.skipped = append(m.skipped, skip{rel, reason})
		default:
			m.files = append(m.files, rel)
		}
		return nil
	})
}

// leaveAlone returns why the go command, matching packages, would not look at a file or directory; "" if it would.
func (m *module) leaveAlone(rel string, entry fs.DirEntry) string {
	switch name := entry.Name(); {
	case name[0] == '.' || name[0] == '_':
		return "its name begins with " + name[:1]
	case !entry.IsDir() && !entry.Type().IsRegular():
		return "not a regular file"
	case !entry.IsDir():
		return ""
	case name == "testdata" || name == "vendor":
		return name + " directory"
	case m.ignored(rel):
		return "ignored by go.mod"
	}
	if info, err := os.Stat(filepath.Join(m.root, rel, "go.mod")); err == nil && !info.IsDir() {
		return "another module"
	}
	return ""
}

// ignored reports whether an ignore directive covers a directory: ./x that directory, x any directory of that name.
func (m *module) ignored(rel string) bool {
	return slices.ContainsFunc(m.gomod.Ignore, func(ignore *modfile.Ignore) bool {
		if at, rooted := strings.CutPrefix(ignore.Path, "./"); rooted {
			return rel == strings.TrimSuffix(at, "/")
		}
		return strings.HasSuffix("/"+rel, "/"+strings.Trim(ignore.Path, "/"))
	})
}

// importers returns how many of the Go files in a skipped place import path. What cannot be read does not count, nor does a
// link to a file that is not skipped.
func (m *module) importers(s skip, path string) int {
	n := 0
	filepath.WalkDir(filepath.Join(m.root, s.path), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") {
			return nil
		}
		target, err := filepath.EvalSymlinks(name)
		if err != nil || m.covers(target) {
			return nil
		}
		if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if src, err := os.ReadFile(target); err == nil && imports(src, path) {
			n++
		}
		return nil
	})
	return n
}

// covers reports whether a file, given without symbolic links in its path, is among m.files.
func (m *module) covers(file string) bool {
	rel, err := filepath.Rel(m.root, file)
	return err == nil && slices.Contains(m.files, filepath.ToSlash(rel))
}
