package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hqsync/hqsync/bench/internal/child"
	"github.com/hqsync/hqsync/bench/internal/environ"
	"github.com/hqsync/hqsync/bench/internal/report"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/service"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// notInAll are the commands that have no section in the report of all, and why.
var notInAll = map[string]string{
	"all":          "it is this one",
	"instructions": "it counts, and has nothing to judge",
	"show":         "it measures nothing",
	"topology":     "the environment says what it prints",
	"tune":         "it compares sync2 with itself",
}

// A variant is how all calls a command, if not simply by its name.
type variant struct {
	args        []string
	quick, full []string // more of them with -quick and without
	ready       func() error
	tags        string        // build tags of a binary of its own; "": this one
	lasts       time.Duration // about, of such a binary, which is built first
}

// variants has the commands of which all makes another number of sections than one, or that need something, or that take
// so long that they get the fewest samples that have an interval, or the short form even in a long report: the thorough
// model of spin locks takes longer than everything else, and its figures do not depend on the machine. They are in all
// even if a build like this one cannot run them itself.
var variants = map[string][]variant{
	"mutex":  {{args: []string{"mutex"}, full: []string{fewest, "-d=60ms"}}},
	"parked": {{args: []string{"parked"}, full: []string{fewest}}},
	"numasim": {
		{args: []string{"numasim", "spin"}, full: []string{"-quick"}, tags: "sim", ready: canBuild, lasts: time.Minute},
		{args: []string{"numasim", "hash"}, tags: "sim", ready: canBuild, lasts: 10 * time.Second},
	},
	"spin": {{args: []string{"spin"}, ready: canPin}},
	"service": {
		{args: []string{"service", "kv"}, quick: []string{fewWorkers}, full: []string{fewest, "-d=500ms"}, ready: service.KV.Missing},
		{args: []string{"service", "http"}, quick: []string{fewWorkers}, full: []string{fewest}, ready: service.HTTP.Missing},
	},
}

const fewWorkers = "-workers=32,128,384"

var fewest = fmt.Sprintf("-samples=%d", stats.MinSamples)

// A section is one child process, and what it measured.
type section struct {
	name string
	variant
}

// sections returns what all runs: every command but those that are left out, in the order of the registry.
func sections(without []string) ([]section, error) {
	var all []section
	known := map[string]bool{}
	for _, c := range commands {
		list, special := variants[c.name]
		if _, out := notInAll[c.name]; out && !special {
			continue
		}
		if !special {
			list = []variant{{args: []string{c.name}}}
		}
		for _, v := range list {
			name := strings.Join(v.args, "-")
			known[c.name], known[name] = true, true
			if !slices.Contains(without, name) && !slices.Contains(without, c.name) {
				all = append(all, section{name, v})
			}
		}
	}
	for _, name := range without {
		if !known[name] {
			return nil, usagef("-without %s: want some of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	if len(all) == 0 {
		return nil, usagef("-without: nothing is left to measure")
	}
	return all, nil
}

// canBuild returns an error that says what is missing for a binary with other tags.
func canBuild() error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command, which builds the simulator, is not installed; install Go, or leave numasim out")
	}
	if _, found := repository(); !found {
		return errors.New("the simulator is built from source; run inside the repository, or leave numasim out")
	}
	return nil
}

// binary returns the program that runs the section, built in the scratch directory if it needs other tags. It is to find
// its revision as one does that go run has built, for which a new report does not count as a change.
func (s *section) binary(ctx context.Context, scratch string) (string, error) {
	if s.tags == "" {
		return os.Executable()
	}
	root, _ := repository()
	program := filepath.Join(scratch, "bench-"+s.tags)
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", s.tags, "-o", program, "./bench")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build -tags %s ./bench: %w: %.500s", s.tags, err, text)
	}
	return program, nil
}

// arguments returns the section's command line. It writes its JSON to the file, if that has a name, and no report.
func (s *section) arguments(common commonFlags, file string) []string {
	args := append(slices.Clone(s.args), "-o="+noReport, "-json="+file)
	if common.Quick {
		args = append(append(args, "-quick"), s.quick...)
	} else {
		args = append(args, s.full...)
	}
	if common.Check {
		args = append(args, "-check")
	}
	if common.Samples != 0 && s.tags == "" {
		args = append(args, fmt.Sprintf("-samples=%d", common.Samples)) // the last one counts
	}
	return args
}

// lasting returns about how long the section takes.
func (s *section) lasting(common commonFlags) (d time.Duration, err error) {
	if s.tags != "" {
		return s.lasts, nil
	}
	asked := &bench{stdout: io.Discard, stderr: io.Discard, planned: &d}
	return d, asked.execute(s.arguments(common, ""))
}

type allCmd struct {
	Without []string `placeholder:"NAME" help:"Leave out commands, such as service or service-http."`
	Plan    bool     `help:"Print how long each section would take, and measure nothing."`
}

func (c *allCmd) Help() string {
	return `Runs every command that measures, each in a process of its own, and puts their sections into one report: all.html and
all.json in the directory of -o. On two CPUs it takes about eight minutes with -quick, and about twenty without, in which
mutex, parked and service, which take longest alone, get fewer or shorter samples, and numasim spin is quick.

Example: go run ./bench all -quick

Example: go run ./bench all -o bench/reports/epyc

Each section says what its ratios mean; 1.00x always means no difference. A section that fails makes the status 1; the
others are reported all the same. Of the common flags -quick, -check, -samples, -json and -o apply.`
}

func (c *allCmd) Run(b *bench) error {
	if err := b.without("all", "filter", "procs", "d"); err != nil {
		return err
	}
	if _, err := b.plan("all"); err != nil { // before what is missing here
		return err
	}
	todo, err := sections(c.Without)
	if err != nil {
		return err
	}
	for _, s := range todo {
		if s.ready == nil {
			continue
		}
		if err := s.ready(); err != nil {
			return usagef("%w (-without %s)", err, s.name)
		}
	}
	out, err := newOutput(b.Out, "all", b.JSON)
	if err != nil {
		return err
	}
	if err := b.printPlan(todo); err != nil || c.Plan {
		return err
	}
	ctx, stop := untilInterrupt()
	defer stop()
	bundle, failure := b.runSections(ctx, todo)
	if len(bundle.Results) == 0 {
		return failure
	}
	if err := out.writeBundle(bundle); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "\nreport of all: %s, %.0f s\n", cmp.Or(out.html, "none"), bundle.Seconds)
	return failure
}

// printPlan says how long everything is going to take, and what of it.
func (b *bench) printPlan(todo []section) error {
	var sum time.Duration
	var parts []string
	for _, s := range todo {
		d, err := s.lasting(b.commonFlags)
		if err != nil {
			return err
		}
		sum += d
		parts = append(parts, fmt.Sprintf("%s %v", s.name, d.Round(time.Second)))
	}
	b.announce(sum, ": "+strings.Join(parts, ", "))
	return nil
}

// runSections runs one after another. The error says which failed.
func (b *bench) runSections(ctx context.Context, todo []section) (*result.Bundle, error) {
	bundle := &result.Bundle{Format: result.Format, Command: "all", Started: time.Now()}
	revision := environ.Read().Revision // of this program, whatever is committed while it runs
	var failed []string
	missed := false
	for i, s := range todo {
		fmt.Fprintf(b.stdout, "\n=== %s (%d of %d)\n", s.name, i+1, len(todo))
		r, err := b.runSection(ctx, s)
		if r != nil {
			if s.tags == "" {
				r.Environment.Revision = revision
			}
			bundle.Results = append(bundle.Results, r)
		}
		if ctx.Err() != nil {
			bundle.Interrupted = true
			break
		}
		switch {
		case errors.Is(err, errMissed):
			missed = true
		case err != nil:
			fmt.Fprintf(b.stderr, "bench: %s: %s\n", s.name, oneLine(err))
			failed = append(failed, s.name)
		}
	}
	bundle.Seconds = time.Since(bundle.Started).Seconds()
	switch {
	case bundle.Interrupted:
		return bundle, errInterrupted
	case len(failed) > 0:
		return bundle, fmt.Errorf("%d of %d sections failed: %s", len(failed), len(todo), strings.Join(failed, ", "))
	case missed:
		return bundle, errMissed
	}
	return bundle, nil
}

// runSection runs the section's command and reads what it measured, even if it failed.
func (b *bench) runSection(ctx context.Context, s section) (*result.Result, error) {
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	program, err := s.binary(ctx, scratch)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(scratch, "result.json")
	cmd := exec.CommandContext(ctx, program, s.arguments(b.commonFlags, file)...)
	cmd.Stdout, cmd.Stderr = b.stdout, b.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	runErr := child.Run(cmd)
	r, err := readResult(file)
	if err != nil {
		return nil, errors.Join(runErr, err)
	}
	if b.Check && cmd.ProcessState.ExitCode() == exitFailed && r.Count(result.Missed) > 0 {
		return r, errMissed
	}
	if runErr == nil && len(r.Tables)+len(r.Sheets) == 0 {
		return r, errors.New("its section is empty")
	}
	return r, runErr
}

func readResult(file string) (*result.Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return result.Read(f)
}

// writeBundle writes the page and the JSON of all sections.
func (o output) writeBundle(bundle *result.Bundle) error {
	return o.writeAs(func(w io.Writer) error { return report.HTML(w, bundle.Results...) }, bundle.Write)
}
