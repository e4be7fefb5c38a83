//go:build sim

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/bench/internal/result"
)

func TestNumasim_PrintsTheModelBesideThePublishedFigures(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	file := filepath.Join(dir, "out.json")
	args := []string{"numasim", "-quick", "-preset", "kunpeng920", "-locks", "hqkernel", "-n", "4,16", "-o", dir, "-json", file}
	if status := run(args, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, want := range []string{"Modelled: 2x Kunpeng 920", "+142", "what a transfer of a cache line costs"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in:\n%s", want, &stdout)
		}
	}
	r, err := readResult(file)
	if err != nil {
		t.Fatal(err)
	}
	checkSheet(t, r, "numasim-kunpeng920", 4)
}

// checkSheet fails unless the result has a sheet of that name with so many full rows and something to plot.
func checkSheet(t *testing.T, r *result.Result, name string, rows int) {
	t.Helper()
	for _, s := range r.Sheets {
		if s.Name != name {
			continue
		}
		if len(s.Rows) != rows || len(s.Plots) != 1 || len(s.Plots[0].Series) == 0 {
			t.Errorf("%s: %d rows and %d plots, want %d and 1", name, len(s.Rows), len(s.Plots), rows)
		}
		for _, row := range s.Rows {
			if len(row) != len(s.Columns) {
				t.Errorf("%s: %d cells in %d columns", name, len(row), len(s.Columns))
			}
		}
		return
	}
	t.Errorf("no sheet %s", name)
}

func TestNumasim_BadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-preset cray1", "want one of epyc9654-nps1"}, {"-locks mutex", "want some of tas"},
		{"-preset kunpeng920 -n 97", "has CPUs for 1 to 96"}, {"-n 0", "has CPUs for 1 to"}, {"-filter x", "takes none of -filter"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(append([]string{"numasim"}, strings.Fields(c.args)...), &stdout, &stderr); status != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: status %d, %q; want %d, …%s…", c.args, status, &stderr, exitUsage, c.want)
		}
	}
}
