package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
)

// TestAll_HasASectionForEveryCommand: a new one gets its section without being listed anywhere.
func TestAll_HasASectionForEveryCommand(t *testing.T) {
	todo, err := sections(nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, s := range todo {
		have[s.args[0]] = true
	}
	for _, c := range commands {
		_, special := variants[c.name]
		if why, out := notInAll[c.name]; have[c.name] != (special || !out) {
			t.Errorf("command %s: in all: %v, left out because %q", c.name, have[c.name], why)
		}
	}
	if fewer, err := sections([]string{"service"}); err != nil || len(fewer) != len(todo)-2 {
		t.Errorf("without service: %d sections, %v, want %d", len(fewer), err, len(todo)-2)
	}
	for _, bad := range [][]string{{"nonesuch"}, {"topology"}} {
		if _, err := sections(bad); err == nil || !strings.Contains(err.Error(), "want some of") {
			t.Errorf("without %v: %v, want what there is", bad, err)
		}
	}
}

// TestAll_BuildsWhatNeedsOtherTags with a tag that means nothing, so that little has to be compiled.
func TestAll_BuildsWhatNeedsOtherTags(t *testing.T) {
	if err := canBuild(); err != nil {
		t.Skip(err)
	}
	s := section{"topology", variant{args: []string{"topology"}, tags: "selftest"}}
	program, err := s.binary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "topology").CombinedOutput(); err != nil || !strings.Contains(string(out), "the caller") {
		t.Errorf("bench topology with the tag: %v\n%s", err, out)
	}
	t.Chdir(t.TempDir())
	if err := canBuild(); err == nil || !strings.Contains(err.Error(), "inside the repository") {
		t.Errorf("outside of the repository: %v, want where to run", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := canBuild(); err == nil || !strings.Contains(err.Error(), "go command") {
		t.Errorf("without Go: %v, want what to install", err)
	}
}

// but returns the flag that leaves all commands but the wanted ones out.
func but(t *testing.T, wanted ...string) string {
	t.Helper()
	todo, err := sections(wanted)
	if err != nil {
		t.Fatal(err)
	}
	var without []string
	for _, s := range todo {
		without = append(without, s.name)
	}
	return "-without=" + strings.Join(without, ",")
}

func readBundle(t *testing.T, file string) result.Bundle {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bundle result.Bundle
	if err := json.Unmarshal(text, &bundle); err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestAll_MakesOneReport(t *testing.T) {
	dir := t.TempDir()
	extra := filepath.Join(dir, "extra.json")
	status, stdout, stderr := start(t, "all", "-quick", but(t, "waitgroup", "cond"), "-o", dir, "-json", extra)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	for _, file := range []string{extra, filepath.Join(dir, "all.json")} {
		bundle := readBundle(t, file)
		if len(bundle.Results) != 2 || bundle.Results[0].Command != "cond" || len(bundle.Results[1].Tables) == 0 {
			t.Errorf("%s: %d results, want those of cond and waitgroup", file, len(bundle.Results))
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 3 {
		t.Errorf("%v, %v; want all.html, all.json and the extra file", files, err)
	}
	if !strings.HasPrefix(stdout, "measuring for about ") || !strings.Contains(stdout, ": cond ") || strings.Contains(stdout, "report: ") {
		t.Errorf("want the plan first, and no reports but that of all\n%s", stdout)
	}
	for _, args := range [][]string{{extra}, {extra, "waitgroup"}} {
		if status, shown, stderr := start(t, append([]string{"show"}, args...)...); status != 0 || stderr != "" || !strings.Contains(stdout, "fork and join") || !strings.Contains(stdout, shown[strings.LastIndex(shown, "WaitGroup ("):]) {
			t.Errorf("show %v: status %d, %s%s; want what was printed:\n%s", args, status, shown, stderr, stdout)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "all.html"))
	if err != nil || strings.Count(string(page), "<article ") != 2 || !strings.Contains(string(page), `class="overview"`) {
		t.Errorf("all.html: %v, want two articles and a way to them", err)
	}
}

// TestAll_IsBounded: what a release report and a quick look are planned to take on two CPUs.
func TestAll_IsBounded(t *testing.T) {
	todo, err := sections(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		common commonFlags
		most   time.Duration
	}{{commonFlags{Quick: true}, 8 * time.Minute}, {commonFlags{}, 23 * time.Minute}} {
		var sum time.Duration
		for _, s := range todo {
			if s.ready != nil && s.ready() != nil {
				t.Logf("%s is left out: %v", s.name, s.ready())
				continue
			}
			d, err := s.lasting(test.common)
			if err != nil || d <= 0 {
				t.Errorf("%s: %v, %v, want a time", s.name, d, err)
			}
			sum += d
		}
		if sum > test.most*time.Duration(max(2, runtime.NumCPU()))/2 {
			t.Errorf("quick %v: planned for %v, want %v or less", test.common.Quick, sum, test.most)
		}
	}
}

// TestAll_Plan_MeasuresNothing and hands on how many samples are wanted.
func TestAll_Plan_MeasuresNothing(t *testing.T) {
	dir := t.TempDir()
	plans := map[string]bool{}
	for _, args := range [][]string{{}, {"-quick"}, {"-samples", "9"}} {
		status, stdout, stderr := start(t, append([]string{"all", "-plan", but(t, "mutex"), "-o", dir}, args...)...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, ": mutex ") {
			t.Errorf("%v: status %d, %s%s", args, status, stdout, stderr)
		}
		plans[stdout] = true
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(plans) != 3 || len(files) != 0 {
		t.Errorf("plans %v, files %v; want three plans and no file", plans, files)
	}
}

// TestAll_Interrupted_ReportsWhatThereIs and leaves no child.
func TestAll_Interrupted_ReportsWhatThereIs(t *testing.T) {
	for after := 8 * time.Second; ; after *= 2 {
		dir := t.TempDir()
		cmd := process(t, "all", "-samples", "1000", but(t, "cond", "waitgroup"), "-o", dir)
		cmd.Env = append(cmd.Env, "TMPDIR="+dir) // whose name is then in the command lines of the children
		status, stdout, stderr := interrupted(t, cmd, after)
		if left, err := exec.Command("pgrep", "-f", dir).Output(); err == nil {
			t.Errorf("processes are left: %s", left)
		}
		reported := status == exitInterrupted && strings.Contains(stdout+stderr, "report of all: ")
		if !reported && after < longestRun {
			continue // no round was complete
		}
		if !reported {
			t.Fatalf("status %d, want %d and a report\n%s%s", status, exitInterrupted, stdout, stderr)
		}
		if bundle := readBundle(t, filepath.Join(dir, "all.json")); !bundle.Interrupted || len(bundle.Results) != 1 || !bundle.Results[0].Interrupted {
			t.Errorf("%d results, interrupted: %v, want the first section's rounds so far", len(bundle.Results), bundle.Interrupted)
		}
		return
	}
}

// TestShow_SaysWhichSectionsThereAre where there is none of that name.
func TestShow_SaysWhichSectionsThereAre(t *testing.T) {
	results := []*result.Result{{Command: "cond"}, {Command: "do"}}
	if _, err := chosen(results, []string{"mutex"}); err == nil || !strings.Contains(err.Error(), "there are: cond, do") {
		t.Errorf("%v, want the names of the sections", err)
	}
	if got, err := chosen(results, []string{"do"}); err != nil || len(got) != 1 || got[0].Command != "do" {
		t.Errorf("%v, %v, want the one that was named", got, err)
	}
}
