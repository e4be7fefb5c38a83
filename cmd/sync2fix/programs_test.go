package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	modpath "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// TestRealPrograms rewrites published modules with sync2fix and runs their own tests on the sync2 of this checkout. Beside each
// runs the control, the module as it was published, because suites fail by themselves on small machines: a test that passes
// there must pass on sync2. testdata/programs.txt lists the programs and says how to run those that are not run by default.
//
// The programs are built with the race detector and with the build tags of this test, so that go test -race work and
// go test -tags purego work examine them too.
func TestRealPrograms(t *testing.T) {
	needHostGo(t)
	for _, p := range selectPrograms(t) {
		t.Run(p.name, func(t *testing.T) {
			published := p.download(t)
			sides{
				control: p.copyTo(t, published, "control"),
				sync2:   onSync2(t, p.copyTo(t, published, "sync2")),
				args:    p.args,
			}.run(t)
		})
	}
}

// A program is one line of testdata/programs.txt.
type program struct {
	name, tier string
	modpath.Version
	sum  string
	args []string // of go test
}

func parseProgram(line string) (program, error) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return program{}, fmt.Errorf("%d fields in %q, want name, tier, module@version, sum and arguments", len(fields), line)
	}
	path, version, _ := strings.Cut(fields[2], "@")
	if err := modpath.Check(path, version); err != nil {
		return program{}, err
	}
	return program{fields[0], fields[1], modpath.Version{Path: path, Version: version}, fields[3], fields[4:]}, nil
}

// listPrograms returns the programs of the list in its order.
func listPrograms(t *testing.T) []program {
	t.Helper()
	var list []program
	for line := range strings.Lines(read(t, "testdata/programs.txt")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		p, err := parseProgram(line)
		if err != nil {
			t.Fatalf("testdata/programs.txt: %v", err)
		}
		list = append(list, p)
	}
	return list
}

// selectPrograms returns those that the environment variable HQSYNC_PROGRAMS names, or the tier that is run without it.
func selectPrograms(t *testing.T) []program {
	t.Helper()
	wanted := []string{"default"}
	if env := os.Getenv("HQSYNC_PROGRAMS"); env != "" {
		wanted = strings.Split(env, ",")
	} else if testing.Short() {
		wanted = []string{"short"}
	}
	list := listPrograms(t)
	var selected []program
	for _, p := range list {
		if slices.Contains(wanted, p.name) || slices.Contains(wanted, p.tier) || slices.Contains(wanted, "all") && p.tier != "short" {
			selected = append(selected, p)
		}
	}
	for _, w := range wanted {
		if w != "all" && !slices.ContainsFunc(list, func(p program) bool { return w == p.name || w == p.tier }) {
			t.Fatalf("HQSYNC_PROGRAMS: %q is neither a program nor a tier of testdata/programs.txt", w)
		}
	}
	return selected
}

// download returns the directory of the module cache that holds the program.
func (p program) download(t *testing.T) string {
	t.Helper()
	out, err := goCommand(t, t.TempDir(), "mod", "download", "-json", p.String()).Output()
	var result struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &result); jsonErr != nil || result.Error != "" || err != nil {
		t.Fatalf("cannot download %s: %s%v", p, result.Error, err)
	}
	return result.Dir
}

// copyTo returns a writable copy of the program, which must be what the list says it is.
func (p program) copyTo(t *testing.T, published, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(published)); err != nil {
		t.Fatal(err)
	}
	sum, err := dirhash.HashDir(dir, p.String(), dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	if sum != p.sum {
		t.Fatalf("%s has changed: its hash is %s, testdata/programs.txt has %s", p, sum, p.sum)
	}
	return dir
}

// onSync2 rewrites the module in dir, as its owner would.
func onSync2(t *testing.T, dir string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-replace", hqsyncRoot(t), dir}, &stdout, &stderr); status != exitDone {
		t.Fatalf("sync2fix: exit status %d\n%s", status, &stderr)
	}
	t.Logf("%s", &stderr)
	mustRun(t, goCommand(t, dir, "mod", "tidy"))
	if deps := mustRun(t, goCommand(t, dir, "list", "-deps", "-test", "./...")); !strings.Contains(deps, sync2Path+"\n") {
		t.Fatalf("%s is not among the packages that the rewritten module needs:\n%s", sync2Path, deps)
	}
	return dir
}

// sides are the two copies of one module.
type sides struct {
	control, sync2 string   // directories
	args           []string // of go test
}

// run runs the tests of both sides and compares them.
func (s sides) run(t *testing.T) {
	var control, sync2 suite
	t.Run("control", func(t *testing.T) {
		control = goTest(t, s.control, s.args...)
		t.Log(control.summary())
		if ran, _ := control.count(); ran == 0 {
			t.Fatalf("no test ran in the module as published:\n%s", control.failures())
		}
		if failed := control.with("fail"); len(failed) > 0 {
			t.Logf("these fail without sync2 and are not held against it: %v", failed)
		}
	})
	if t.Failed() {
		return // nothing to compare with
	}
	t.Run("sync2", func(t *testing.T) {
		sync2 = goTest(t, s.sync2, s.args...)
		t.Log(sync2.summary())
		suspects := suspects(control, sync2)
		if again := rerun(suspects, sync2); again != nil {
			t.Logf("run again without sync2, since they passed there and not here: %v", again)
			var flaky []testID
			flaky, suspects = acquit(suspects, goTest(t, s.control, append([]string{"-count=10"}, again...)...))
			t.Logf("flaky, since they failed without sync2 this time: %v", flaky)
		}
		for _, id := range suspects {
			t.Errorf("%v passes on sync and not on sync2 (%s)\n%s", id, sync2.result(id), sync2.tail(id))
		}
		ran, _ := sync2.count()
		if before, _ := control.count(); ran < before && !t.Failed() {
			t.Errorf("%d tests ran on sync2, %d on sync", ran, before)
		}
	})
}

// goTest runs the tests of the module in dir the way this test itself was built.
func goTest(t *testing.T, dir string, args ...string) suite {
	t.Helper()
	cmd := goCommand(t, dir, "test", "-json", "-count=1", "-vet=off")
	if deadline, ok := t.Deadline(); ok {
		cmd.Args = append(cmd.Args, "-timeout="+time.Until(deadline.Add(-10*time.Second)).String())
	}
	cmd.Args = append(append(cmd.Args, buildFlags(t)...), args...)
	start := time.Now()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output() // the exit status says no more than the events
	s, parseErr := parseSuite(bytes.NewReader(out))
	if parseErr != nil || len(s.results) == 0 {
		t.Fatalf("%v: %v %v\n%s", cmd, err, parseErr, &stderr)
	}
	s.took = time.Since(start)
	return s
}

// buildFlags returns the flags of go build that this test binary was built with and that matter to the programs.
func buildFlags(t *testing.T) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test binary does not know how it was built")
	}
	var flags []string
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-tags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

func goCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, goEnv(t)
	return cmd
}

func mustRun(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}
