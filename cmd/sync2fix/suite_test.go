package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A testID names a test or subtest, or, if test is empty, a package as a whole.
type testID struct{ pkg, test string }

func (id testID) String() string { return strings.TrimSuffix(id.pkg+"."+id.test, ".") }

func compareIDs(a, b testID) int { return strings.Compare(a.String(), b.String()) }

// A suite is what one go test -json said. If a test ran more than once, one failure is a failure.
type suite struct {
	results map[testID]string // pass, fail or skip; absent if it never ended
	output  map[testID][]string
	unbuilt map[string]bool // packages whose tests do not compile
	took    time.Duration
}

func parseSuite(r io.Reader) (suite, error) {
	s := suite{results: map[testID]string{}, output: map[testID][]string{}, unbuilt: map[string]bool{}}
	for events := json.NewDecoder(r); ; {
		var event struct{ Action, Package, ImportPath, FailedBuild, Test, Output string }
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return s, err
		}
		id := testID{event.Package, event.Test}
		switch event.Action {
		case "output":
			s.output[id] = append(s.output[id], event.Output)
		case "build-output": // of the package itself or one that its test needs
			s.output[testID{pkg: event.ImportPath}] = append(s.output[testID{pkg: event.ImportPath}], event.Output)
		case "pass", "fail", "skip":
			if s.results[id] != "fail" {
				s.results[id] = event.Action
			}
			if event.FailedBuild != "" {
				s.unbuilt[event.Package] = true
				s.output[id] = append(s.output[id], s.output[testID{pkg: event.FailedBuild}]...)
			}
		}
	}
}

func (s suite) result(id testID) string {
	if result, ended := s.results[id]; ended {
		return result
	}
	return "did not run to its end"
}

// count returns how many tests and subtests ran to their end, and how many skipped themselves.
func (s suite) count() (ran, skipped int) {
	for id, result := range s.results {
		switch {
		case id.test == "":
		case result == "skip":
			skipped++
		default:
			ran++
		}
	}
	return ran, skipped
}

// with returns the tests and packages that ended so.
func (s suite) with(result string) []testID {
	var ids []testID
	for id, r := range s.results {
		if r == result {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

func (s suite) summary() string {
	ran, skipped := s.count()
	failed := 0
	for _, id := range s.with("fail") {
		if id.test != "" {
			failed++
		}
	}
	return fmt.Sprintf("%d tests ran, %d failed, %d skipped, %.1f s with the build", ran, failed, skipped, s.took.Seconds())
}

// tail returns the end of what a test printed; that of its package if it printed nothing.
func (s suite) tail(id testID) string {
	lines := s.output[id]
	if len(lines) == 0 {
		lines = s.output[testID{pkg: id.pkg}]
	}
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

// failures returns the output of everything that failed.
func (s suite) failures() string {
	var b strings.Builder
	for _, id := range s.with("fail") {
		fmt.Fprintf(&b, "%v:\n%s", id, s.tail(id))
	}
	return b.String()
}

// suspects returns what passed in the control and not on sync2. Of a package that does not compile only the package is named;
// of one that fails because of its tests, only these. A subtest that is missing though its test passed is not suspect: some
// are named after the time of day.
func suspects(control, sync2 suite) []testID {
	var ids []testID
	blamed := map[string]bool{}
	passed := control.with("pass")
	for _, id := range passed {
		result, ended := sync2.results[id]
		top, _, isSubtest := strings.Cut(id.test, "/")
		renamed := !ended && isSubtest && sync2.results[testID{id.pkg, top}] == "pass"
		if id.test != "" && result != "pass" && !renamed && !sync2.unbuilt[id.pkg] {
			ids = append(ids, id)
			blamed[id.pkg] = true
		}
	}
	for _, id := range passed {
		if id.test == "" && sync2.results[id] != "pass" && !blamed[id.pkg] {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// rerun returns arguments of go test that run the suspects only; none if there is nothing to run. What does not compile fails
// again.
func rerun(ids []testID, sync2 suite) (args []string) {
	var pkgs, tests []string
	for _, id := range ids {
		if sync2.unbuilt[id.pkg] {
			continue
		}
		top, _, _ := strings.Cut(id.test, "/")
		pkgs, tests = append(pkgs, id.pkg), append(tests, regexp.QuoteMeta(top))
	}
	if len(pkgs) == 0 {
		return nil
	}
	slices.Sort(pkgs)
	slices.Sort(tests)
	pattern := "^(" + strings.Join(slices.Compact(tests), "|") + ")$"
	if tests[0] == "" {
		pattern = "" // a package as a whole: all of its tests
	}
	return append([]string{"-run=" + pattern}, slices.Compact(pkgs)...)
}

// acquit separates the suspects that fail without sync2 as well from those that do not.
func acquit(suspects []testID, controlAgain suite) (flaky, guilty []testID) {
	for _, id := range suspects {
		if controlAgain.results[id] == "fail" {
			flaky = append(flaky, id)
		} else {
			guilty = append(guilty, id)
		}
	}
	return flaky, guilty
}

// TestSuspects makes sure that TestRealPrograms can fail: one of two modules here breaks in every way that could be blamed on
// sync2, and in some that could not.
func TestSuspects(t *testing.T) {
	needHostGo(t)
	archive, err := txtar.ParseFile("testdata/suites.txtar")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := txtar.Write(archive, work); err != nil {
		t.Fatal(err)
	}
	sync2Dir := filepath.Join(work, "sync2")
	for _, f := range archive.Files { // sync2 is control, less what it has itself
		rel, inControl := strings.CutPrefix(f.Name, "control/")
		if target := filepath.Join(sync2Dir, rel); inControl && rel != "side.go" {
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, target, string(f.Data))
		}
	}
	control := goTest(t, filepath.Join(work, "control"), "./...")
	sync2 := goTest(t, sync2Dir, "./...")

	const m = "example.com/m"
	want := []testID{
		{m + "/build", ""},
		{m + "/crash", "TestAfterCrash"},
		{m + "/crash", "TestCrash"},
		{m + "/exit", ""},
		{m, "TestFailsOnSync2"},
		{m, "TestFailsOnSync2/bad"},
		{m, "TestFlaky"},
		{m, "TestSkipsOnSync2"},
	}
	slices.SortFunc(want, compareIDs)
	found := suspects(control, sync2)
	if !slices.Equal(found, want) {
		t.Errorf("suspects are\n%v\nwant\n%v", found, want)
	}
	for id, text := range map[testID]string{
		{m, "TestFailsOnSync2/bad"}:   "the reason why",
		{m + "/build", ""}:            "the compiler says why",
		{m + "/crash", "TestCrash"}:   "in a test",
		{m, "TestFailsOnBothSides"}:   "as always",
		{m + "/exit", ""}:             "FAIL\texample.com/m/exit",
		{m + "/crash", "TestMissing"}: "FAIL",
	} {
		if got := sync2.tail(id); !strings.Contains(got, text) {
			t.Errorf("the report on %v does not contain %q:\n%s", id, text, got)
		}
	}
	ran, skipped := control.count()
	if onSync2, _ := sync2.count(); ran != 17 || skipped != 1 || onSync2 >= ran {
		t.Errorf("control: %d tests ran, %d skipped, want 17 and 1; on sync2 ran %d, which should be fewer", ran, skipped, onSync2)
	}

	only := []testID{{m, "TestFlaky"}, {m + "/build", ""}, {m + "/crash", "TestCrash"}}
	if got := rerun(only, sync2); !slices.Equal(got, []string{"-run=^(TestCrash|TestFlaky)$", m, m + "/crash"}) {
		t.Errorf("to run %v again the arguments are %q", only, got)
	}
	again := goTest(t, filepath.Join(work, "control"), append([]string{"-count=2"}, rerun(found, sync2)...)...)
	flaky, guilty := acquit(found, again)
	if len(guilty) != len(want)-1 || !slices.Equal(flaky, []testID{{m, "TestFlaky"}}) {
		t.Errorf("flaky are %v, guilty %v; want TestFlaky alone acquitted", flaky, guilty)
	}
}
