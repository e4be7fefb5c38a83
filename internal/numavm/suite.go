package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/numavm/plan"
)

// A suite is a package whose test binary has been built.
type suite struct {
	name   string // last element of the import path
	dir    string // on the host
	binary string
}

// guestDir is where a suite's package is in the guest, with the files that its
// tests look at.
func (s suite) guestDir() string { return "src/" + s.name }

func (s suite) guestBinary() string { return "bin/" + s.name + ".test" }

// build compiles the first process of the guest, into dir/init, and the tests of
// packages. Without cgo they are static.
func build(ctx context.Context, dir string, packages []string) ([]suite, error) {
	gotool := func(args ...string) (string, error) {
		env := []string{"env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS="}
		return output(ctx, "", env[0], append(append(env[1:], "go"), args...)...)
	}
	const smaller = "-ldflags=-s -w"
	if _, err := gotool("build", smaller, "-o", filepath.Join(dir, "init"), "github.com/hqsync/hqsync/internal/numavm/guest"); err != nil {
		return nil, err
	}
	list, err := gotool(append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var suites []suite
	for line := range strings.Lines(list) {
		importPath, source, _ := strings.Cut(strings.TrimSpace(line), "\t")
		s := suite{name: path.Base(importPath), dir: source}
		s.binary = filepath.Join(dir, s.name+".test")
		if _, err := gotool("test", "-c", smaller, "-o", s.binary, importPath); err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	return suites, nil
}

// control is the job that has to fail, with the status of a wrong flag.
const (
	control       = "control"
	controlStatus = 2
)

// planFor returns the guest's jobs.
func planFor(suites []suite, o options) plan.Plan {
	p := plan.Plan{Jobs: []plan.Job{{Name: control, Dir: "/", Command: []string{"/" + suites[0].guestBinary(), "-test.wrong"}}}}
	for _, s := range suites {
		command := []string{"/" + s.guestBinary(), "-test.v", "-test.timeout=" + o.timeout.String()}
		if !o.long {
			command = append(command, "-test.short")
		}
		if o.run != "" {
			command = append(command, "-test.run="+o.run)
		}
		p.Jobs = append(p.Jobs, plan.Job{
			Name: s.name, Dir: "/" + s.guestDir(), Command: command, Env: []string{numatest.Env + "=" + machine.String()},
		})
	}
	return p
}

// pack writes the guest's file system.
func pack(file, built string, suites []suite, p plan.Plan) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	buffered := bufio.NewWriterSize(out, 1<<20)
	a := newArchive(buffered)
	if err := packFile(a, "init", filepath.Join(built, "init")); err != nil {
		return err
	}
	for _, s := range suites {
		if err := packSuite(a, s); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	a.file(plan.File, 0o644, text)
	if err := a.close(); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return out.Close()
}

// packSuite adds a test binary and the package's source and testdata.
func packSuite(a *archive, s suite) error {
	if err := packFile(a, s.guestBinary(), s.binary); err != nil {
		return err
	}
	return filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(s.dir, name)
		if err != nil {
			return err
		}
		return packFile(a, path.Join(s.guestDir(), filepath.ToSlash(relative)), name)
	})
}

func packFile(a *archive, name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	a.file(name, info.Mode(), content)
	return nil
}
