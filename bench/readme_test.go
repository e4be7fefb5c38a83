package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/bench/internal/report"
	"github.com/hqsync/hqsync/bench/internal/result"
)

// largestFile is the most that a file of a report may add to the repository.
const largestFile = 1 << 20

// newestReport returns what all wrote last of what is kept in bench/reports, and its directory.
func newestReport(t *testing.T) (bundle result.Bundle, dir string) {
	t.Helper()
	files, err := filepath.Glob("reports/*/all.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if b := readBundle(t, file); dir == "" || b.Started.After(bundle.Started) {
			bundle, dir = b, filepath.Dir(file)
		}
	}
	if dir == "" {
		t.Skip("no report is kept: go run ./bench all -o bench/reports/NAME makes one")
	}
	return bundle, dir
}

// printed is what the commands printed of the results, with targets and without.
func printed(t *testing.T, results []*result.Result) string {
	t.Helper()
	var b strings.Builder
	for _, r := range results {
		for _, verdicts := range []bool{false, true} {
			if err := report.Text(&b, r, report.TextOptions{Verdicts: verdicts}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.String()
}

// figure matches a ratio, or a time with its unit.
var figure = regexp.MustCompile(`\d+\.\d+x|\d+(\.\d+)? (ns|µs)\b`)

// misquoted returns the lines of the document's blocks, and the figures of its text, that were never printed. How words
// are spaced does not matter.
func misquoted(document, printed string) (wrong []string) {
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	inBlock := false
	for line := range strings.Lines(document) {
		line = strings.Join(strings.Fields(line), " ")
		figures := figure.FindAllString(line, -1)
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock && len(figures) > 0 && !slices.Contains(lines, line):
			wrong = append(wrong, line)
		case !inBlock:
			for _, f := range figures {
				if !slices.ContainsFunc(lines, func(l string) bool { return slices.Contains(figure.FindAllString(l, -1), f) }) {
					wrong = append(wrong, f)
				}
			}
		}
	}
	return wrong
}

// TestReadme_QuotesTheReport: no figure of README that the report in bench/reports does not have, and it says of which
// machine and where the rest is.
func TestReadme_QuotesTheReport(t *testing.T) {
	bundle, dir := newestReport(t)
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	for _, wrong := range misquoted(readme, printed(t, bundle.Results)) {
		t.Errorf("README has %q, which is not in %s/all.json", wrong, dir)
	}
	if len(figure.FindAllString(readme, -1)) == 0 {
		t.Error("README has no figure")
	}
	env := bundle.Results[0].Environment
	for _, want := range []string{env.CPU, "Go " + strings.TrimPrefix(env.Go, "go"), "bench/" + filepath.ToSlash(dir)} {
		if !strings.Contains(readme, want) {
			t.Errorf("README does not say %q, as the report does", want)
		}
	}
}

// TestReadme_Misquotes: the comparison notices another figure in a table and in the text, and nothing else.
func TestReadme_Misquotes(t *testing.T) {
	const table = "Mutex  12.3 ns  6.1 ns  2.00x  1.90-2.10\n"
	for document, want := range map[string]string{
		"Twice as fast: 2.00x, 6.1 ns.\n```\n   Mutex 12.3 ns 6.1 ns 2.00x 1.90-2.10\n```\n": "",
		"```\ngo run ./bench # half a minute\n```\n0.25 of it\n":                             "",
		"Faster: 2.01x\n": "2.01x",
		"Takes 5 ns\n":    "5 ns",
		"```\nMutex  12.3 ns  6.1 ns  2.00x  1.80-2.10\n```\n": "Mutex 12.3 ns 6.1 ns 2.00x 1.80-2.10",
	} {
		if got := strings.Join(misquoted(document, table), "; "); got != want {
			t.Errorf("%q: misquoted %q, want %q", document, got, want)
		}
	}
}

// TestReports_AreWhole: what is kept is of one run of all, complete, and not too large.
func TestReports_AreWhole(t *testing.T) {
	bundle, dir := newestReport(t)
	todo, err := sections(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(bundle.Results) != len(todo) || bundle.Interrupted {
		t.Errorf("%s has %d sections, interrupted: %v; want %d", dir, len(bundle.Results), bundle.Interrupted, len(todo))
	}
	for _, r := range bundle.Results {
		if r.Interrupted || len(r.Tables)+len(r.Sheets) == 0 {
			t.Errorf("section %s of %s is not whole", r.Command, dir)
		}
		if r.Environment.Revision != bundle.Results[0].Environment.Revision {
			t.Errorf("section %s is of revision %s, others of %s", r.Command, r.Environment.Revision, bundle.Results[0].Environment.Revision)
		}
	}
	if r := bundle.Results[0].Environment.Revision; strings.HasSuffix(r, "+changes") {
		t.Errorf("%s is of revision %s: of a source that nobody else has", dir, r)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > largestFile {
			t.Errorf("%s/%s has %d bytes, want %d or less", dir, file.Name(), info.Size(), largestFile)
		}
	}
}
