package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// asCommand makes the test binary behave as the command: what is tested is then the exit status and the output of a
// process.
const asCommand = "HQSYNC_BENCH_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// start runs the command and returns its status and what it printed.
func start(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := process(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestUselessRequest_OneLineAndStatus2(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"-bogus"}, "--bogus"},
		{[]string{"nonesuch"}, "nonesuch"},
		{[]string{"mutex", "nonesuch"}, "nonesuch"},
		{[]string{"mutex", "-g", "0"}, "-g 0"},
		{[]string{"hash", "-g", "100000"}, "-g 100000"},
		{[]string{"hash", "-words", "100"}, "-words 100"},
		{[]string{"wake", "-g", "3"}, "-g 3"},
		{[]string{"handoff", "-g", "0"}, "-g 0"},
		{[]string{"parked", "-g", "5"}, "-mutexes 0"},
		{[]string{"parked", "-g", "0", "-mutexes", "5"}, "-g 0"},
		{[]string{"parked", "-g", "5", "-mutexes", "6"}, "-mutexes 6"},
		{[]string{"mutex", "-g", "many"}, "many"},
		{[]string{"spin", "-locks", "nonesuch"}, `no lock "nonesuch"`},
		{[]string{"tune", "-slice", "1ns"}, "Tunables.Slice cannot be 1ns"},
		{[]string{"-d", "soon"}, "soon"},
		{[]string{"-d", "1ns"}, "-d 1ns"},
		{[]string{"-d=-5s"}, "-d -5s"},
		{[]string{"-samples", "5"}, "-samples 5"},
		{[]string{"-turn", "1h"}, "-turn 1h"},
		{[]string{"all", "-filter", "x"}, "-filter"},
		{[]string{"all", "-samples", "5"}, "-samples 5"},
		{[]string{"torture", "-procs", "2"}, "torture takes no -procs"},
		{[]string{"topology", "-d", "1s"}, "topology takes no -d"},
		{[]string{"instructions", "-o", "x"}, "instructions takes no -out"},
		{[]string{"all", "-without", "nonesuch"}, "-without nonesuch"},
		{[]string{"show", filepath.Join(dir, "missing")}, "no such file"},
		{[]string{"show", file}, "not a result"},
		{[]string{"service"}, "kv"},
		{[]string{"service", "kv", "-workers", "0"}, "-workers 0"},
		{[]string{"service", "kv", "-d", "1ms"}, "-d 1ms"},
		{[]string{"torture", "-lock", "nonesuch"}, "busted"},
		{[]string{"torture", "-without", "nonesuch"}, "affinity"},
		{[]string{"torture", "-patience", "1ns"}, "-patience 1ns"},
		{[]string{"-procs", "0"}, "-procs 0"},
		{[]string{"-procs", "1000000"}, "-procs 1000000"},
		{[]string{"-filter", "("}, "-filter"},
		{[]string{"-filter", "NoSuchRow"}, "MutexUncontended"},
		{[]string{"-procs", "2,4,2"}, "/p=2 would be measured twice"},
		{[]string{"mutex", "-g", "2,2"}, "g=2/in=0/out=0 would be measured twice"},
		{[]string{"-json", "-"}, "-json -: name a file"},
		{[]string{"topology", "-root", filepath.Join(dir, "missing")}, "-root"},
		{[]string{"topology", "-root", file}, "-root"},
		{[]string{"-out", filepath.Join(file, "sub")}, "-out DIR"},
		{[]string{"-out", dir, "-json", filepath.Join(dir, "no", "such", "file")}, "-json FILE"},
	} {
		status, stdout, stderr := start(t, test.args...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "bench: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("bench %v: status %d, stdout %q, stderr %q; want status 2 and one line with %q", test.args, status, stdout, stderr, test.want)
		}
	}
}

// leaves returns the command lines that run something: every command, and the commands of commands instead of those.
func leaves(t *testing.T) [][]string {
	t.Helper()
	parser, err := (&bench{stdout: io.Discard, stderr: io.Discard}).parser()
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for _, command := range parser.Model.Children {
		if command.Leaf() {
			found = append(found, []string{command.Name})
		}
		for _, sub := range command.Children {
			found = append(found, []string{command.Name, sub.Name})
		}
	}
	if len(found) < len(commands) {
		t.Fatalf("%d leaves of %d commands", len(found), len(commands))
	}
	return found
}

// cannotRun matches what a command says that lacks a generator, a build tag or a runtime to pin to here.
var cannotRun = regexp.MustCompile(`is not installed|-tags sim|cannot pin`)

// TestEveryCommand_UselessRequest: a wrong flag, and an output directory that cannot be, where the command has one.
func TestEveryCommand_UselessRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range leaves(t) {
		for flag, want := range map[string]string{"-bogus": "--bogus", "-out=" + filepath.Join(file, "sub"): "-out", "-json=" + filepath.Join(file, "x"): "-json"} {
			status, stdout, stderr := start(t, append(slices.Clone(leaf), flag)...)
			if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) && !cannotRun.MatchString(stderr) {
				t.Errorf("bench %v %s: status %d, stdout %q, stderr %q; want status 2 and one line with %q", leaf, flag, status, stdout, stderr, want)
			}
		}
	}
}

var exampleOf = regexp.MustCompile(`Example: go run (-tags sim )?\./bench`)

func TestHelp_ExplainsEveryCommandWithAnExample(t *testing.T) {
	all := leaves(t)
	status, stdout, _ := start(t, "-h")
	if status != 0 {
		t.Errorf("bench -h: status %d", status)
	}
	for _, c := range commands {
		if !strings.Contains(stdout, c.name) {
			t.Errorf("bench -h does not name %s", c.name)
		}
		if leaf := []string{c.name}; !slices.ContainsFunc(all, func(l []string) bool { return slices.Equal(l, leaf) }) {
			all = append(all, leaf)
		}
	}
	for _, leaf := range all {
		status, detail, stderr := start(t, append(slices.Clone(leaf), "-h")...)
		if status != 0 || stderr != "" || !exampleOf.MatchString(detail) || !strings.Contains(detail, "means") || !strings.Contains(detail, "--quick") {
			t.Errorf("bench %s -h: status %d, want an example, what a result means and the flags; got %s%s", leaf, status, detail, stderr)
		}
	}
}

func TestHeadline_MeasuresAndReports(t *testing.T) {
	dir := t.TempDir()
	extra := filepath.Join(dir, "extra.json")
	status, stdout, stderr := start(t, "-samples", "6", "-d", "5ms", "-out", dir, "-json", extra)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q, want 0 and nothing in a pipe", status, stderr)
	}
	for _, want := range []string{"Mutex, uncontended", "Mutex, 2 goroutines", "Mutex, 16 goroutines", "Mutex, 1024 goroutines", "RWMutex, reader alone",
		"RWMutex, readers on all Ps", "Cond, broadcast", "WaitGroup, fork and join", "sync/sync", "noise gauge", filepath.Join(dir, "report.html")} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q:\n%s", want, stdout)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("<svg")) || !bytes.Contains(page, []byte(runtime.Version())) {
		t.Errorf("report.html: %v, %d bytes, want plots and the environment", err, len(page))
	}
	for _, name := range []string{extra, filepath.Join(dir, "report.json")} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 8 {
			t.Fatalf("%s: want one table of 8 rows", name)
		}
		for _, row := range r.Tables[0].Rows {
			if !row.Ratio.Known() || !row.Gauge.Known() || row.Ratio.Lo > row.Ratio.Median || row.Ratio.Median > row.Ratio.Hi || row.Ratio.Lo <= 0 || math.IsInf(row.Ratio.Hi, 0) {
				t.Errorf("%s: ratio %+v, gauge %+v, want intervals of six samples", row.Name, row.Ratio, row.Gauge)
			}
		}
	}
}

// TestEachCommand_Runs measures a few cells of each, timed ones among them, with everything that the flags can add.
func TestEachCommand_Runs(t *testing.T) {
	dir := t.TempDir()
	for command, pattern := range map[string]string{
		"mutex":     `Uncontended|/g=4/in=20/out=20$`,
		"rwmutex":   `Read/|Wait|WriteAlone`,
		"cond":      `in=100/held=0|PingPong`,
		"waitgroup": `n=10$|AddDone/g=1$`,
		"do":        `Uncontended|g=16/in=20/out=20`,
		"tune":      `g=2/in=20/`,
	} {
		status, stdout, stderr := start(t, command, "-samples", "6", "-d", "5ms", "-filter", pattern, "-out", dir)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "targets: ") {
			t.Errorf("bench %s: status %d, stderr %q\n%s", command, status, stderr, stdout)
		}
		if _, err := os.Stat(filepath.Join(dir, command+".html")); err != nil {
			t.Error(err)
		}
	}
	status, stdout, stderr := start(t, "mutex", "-no-peers", "-g", "3", "-procs", "1,4", "-filter", "in=20/out=20", "-samples", "6", "-d", "5ms", "-out", dir)
	if status != 0 || !strings.Contains(stdout, "GOMAXPROCS 4") || !strings.Contains(stdout, ">= 0.90x") || strings.Contains(stdout, "semaphore") {
		t.Errorf("bench mutex -procs 1,4: status %d, stderr %q\n%s", status, stderr, stdout)
	}
}

// interrupted runs the command, interrupts it after a while and returns its status and what it printed.
func interrupted(t *testing.T, cmd *exec.Cmd, after time.Duration) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// longestRun is how late an interrupt comes at the latest: on a busy machine the first round takes long.
const longestRun = 64 * time.Second

func TestInterrupt_PrintsWhatWasMeasured(t *testing.T) {
	for after := 2 * time.Second; ; after *= 2 {
		cmd := process(t, "mutex", "-no-peers", "-filter", "g=2/in=0/out=0$", "-samples", "10000", "-d", "5ms", "-out", t.TempDir())
		status, stdout, stderr := interrupted(t, cmd, after)
		if status == exitInterrupted && stderr == "" && strings.Contains(stdout, "g=2/in=0/out=0") && strings.Contains(stdout, "interrupted") && strings.Contains(stdout, "report: ") {
			return
		}
		if after >= longestRun {
			t.Fatalf("status %d, stderr %q, want %d and the rounds so far\n%s", status, stderr, exitInterrupted, stdout)
		}
	}
}

// TestOutput_ChangesNoFileUntilAllFormsAreThere: what is there already stays whole if one of the forms cannot be made.
func TestOutput_ChangesNoFileUntilAllFormsAreThere(t *testing.T) {
	o, err := newOutput(t.TempDir(), "headline", "")
	if err != nil {
		t.Fatal(err)
	}
	writes := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error { _, _ = io.WriteString(w, text); return err }
	}
	if err := o.writeAs(writes("page", nil), writes("data", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := o.writeAs(writes("new", nil), writes("ne", broken)); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the form that is broken", err)
	}
	for file, want := range map[string]string{o.html: "page", o.json: "data"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", file, text, err, want)
		}
	}
}

// oneCell is a table of one cheap row.
func oneCell(target *result.Target) func(int) []tableSpec {
	return func(int) []tableSpec {
		return []tableSpec{{name: "one", title: "One", cells: []cell{{
			name: "One", label: "one",
			job:  func(s workload.Set) harness.Job { return s.MutexAlone() },
			rows: []rowSpec{{measure: result.Time, target: target}},
		}}}}
	}
}

func TestCheck_FailsOnlyIfATargetIsMissed(t *testing.T) {
	for _, test := range []struct {
		check  bool
		target *result.Target
		want   error
	}{
		{true, result.AtMost(0.001), errMissed},
		{true, result.AtMost(1000), nil},
		{false, result.AtMost(0.001), nil},
	} {
		b := &bench{commonFlags: commonFlags{Check: test.check, Samples: 6, D: shortest, Out: t.TempDir()}, stdout: io.Discard, stderr: io.Discard}
		if err := b.run("test", oneCell(test.target)); !errors.Is(err, test.want) {
			t.Errorf("check %v, target %v: %v, want %v", test.check, test.target, err, test.want)
		}
	}
}

func TestMeasure_SaysWhenNothingEnds(t *testing.T) {
	specs := oneCell(nil)(0)
	specs[0].cells[0].job = func(workload.Set) harness.Job {
		return harness.Job{Workers: 1, Loop: func(_ int, m *harness.Meter) (t harness.Tally) {
			for m.Phase() != harness.Stopped {
				runtime.Gosched()
			}
			return t
		}}
	}
	_, err := measure(context.Background(), plan{rounds: 6, duration: shortest, timed: shortest}, specs)
	if err == nil || !strings.Contains(err.Error(), "measure longer with -d") {
		t.Errorf("measure of a job that does nothing: %v, want advice", err)
	}
}

// TestWholeGridOnly_IsJudgedByItsMean: a selection's mean says nothing about the target.
func TestWholeGridOnly_IsJudgedByItsMean(t *testing.T) {
	b := &bench{}
	whole, err := b.tables(func(procs int) []tableSpec { return mutexTables(nil, procs, false) })
	if err != nil || len(whole[1].cells) != 30 || whole[1].means[result.Throughput] == nil || len(whole[2].cells) != 30 || whole[2].means[result.WaitMax] == nil {
		t.Errorf("whole grid: %v, want 30 cells and targets for its means", err)
	}
	b.Filter = "g=16/"
	part, err := b.tables(func(procs int) []tableSpec { return mutexTables(nil, procs, false) })
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range part {
		for m, target := range spec.means {
			if target != nil {
				t.Errorf("%s: the mean %s of %d cells is judged", spec.name, m, len(spec.cells))
			}
		}
	}
}

// controlCells are cheap cells of every kind.
func controlCells(t *testing.T) tableSpec {
	spec := tableSpec{name: "control", means: map[result.Measure]*result.Target{}}
	for _, table := range everyTable() {
		for _, c := range table.cells {
			pick := strings.HasPrefix(c.name, "Mutex/") && strings.HasSuffix(c.name, "00") && (c.params["g"] == 2 || c.params["g"] == 16) ||
				strings.HasPrefix(c.name, "RWMutexRead/") || strings.HasPrefix(c.name, "WaitGroupAddDone/g=1") || strings.HasSuffix(c.name, "WriteAlone")
			if pick && table.name != "headline" {
				c.peers = nil
				c.rows = []rowSpec{{measure: result.Time}}
				spec.cells = append(spec.cells, c)
			}
		}
	}
	if len(spec.cells) < 10 {
		t.Fatalf("%d cells, want 10 or more", len(spec.cells))
	}
	return spec
}

// A control measures on until the interval of the mean over all cells is this narrow, or the time is over.
const (
	preciseTo   = 1.03 // upper to lower end
	controlTime = 15 * time.Second
)

// control measures the cells and says what is wrong with sync against itself, if anything. How long it measures depends
// on how narrow the interval is and not on where it lies.
func control(t *testing.T, spec tableSpec) (fault string) {
	t.Helper()
	var rows []result.Row
	var mean stats.Estimate
	for begin := time.Now(); ; {
		r, err := measure(context.Background(), plan{rounds: 8, duration: 8 * time.Millisecond, timed: shortest}, []tableSpec{spec})
		if err != nil {
			t.Fatal(err)
		}
		rows = appendSamples(rows, r.Tables[0].Rows[:len(spec.cells)])
		mean = result.Mean(rows, "", nil).Gauge
		if mean.Hi <= preciseTo*mean.Lo || time.Since(begin) > controlTime {
			break
		}
	}
	g := (&result.Result{Tables: []result.Table{{Rows: rows}}}).Gauge()
	t.Logf("%d samples: %d of %d intervals hold 1; median of the ratios %.3f, rows from %.3f to %.3f; mean %.3f in %.3f to %.3f",
		mean.N, g.Holding, g.Rows, g.Median, g.Lo, g.Hi, mean.Median, mean.Lo, mean.Hi)
	if float64(g.Holding) < 0.9*float64(g.Rows) {
		return "sync differs from itself in more than a tenth of the cells"
	}
	// On a machine that others keep so busy that it never gets precise the median strays further, and then the interval
	// shows it.
	if math.Abs(g.Median-1) > 0.02 && !mean.Holds(1) {
		return "sync differs from itself by more than 2 % in the median, and not by chance"
	}
	return ""
}

// appendSamples adds the samples of more to those of the same rows.
func appendSamples(rows, more []result.Row) []result.Row {
	if rows == nil {
		return more
	}
	for i := range rows {
		for name, samples := range more[i].Samples {
			rows[i].Samples[name] = append(rows[i].Samples[name], samples...)
		}
		rows[i].Evaluate()
	}
	return rows
}

// TestControl_AgainstItself measures package sync against itself: if the harness favoured whoever comes first, or its
// intervals were too narrow, no comparison it makes could be believed. One of several attempts has to pass: each interval
// misses the truth in one case of twenty, so that of eleven cells two or more do by chance in one attempt of ten, and more
// often where other processes disturb all cells of a round alike. A fault of the harness shows in every attempt.
func TestControl_AgainstItself(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: measures for several seconds")
	}
	spec := controlCells(t)
	var faults []string
	for range 4 {
		fault := control(t, spec)
		if fault == "" {
			return
		}
		faults = append(faults, fault)
	}
	t.Errorf("in each of %d attempts: %q", len(faults), faults)
}

// TestControl_NoticesABias: the same check fails when one of the two has more to do. Eight times as much, to stand out on
// a machine that others keep busy as well.
func TestControl_NoticesABias(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: measures for several seconds")
	}
	honest := implementations[result.Again]
	defer func() { implementations[result.Again] = honest }()
	biased := honest
	biased.Mutex = func(g, in, out int) harness.Job { return honest.Mutex(g, 8*in, 8*out) }
	implementations[result.Again] = biased

	spec := controlCells(t)
	spec.cells = slices.DeleteFunc(spec.cells, func(c cell) bool { return c.params["in"] < 200 })
	if fault := control(t, spec); fault == "" {
		if fault = control(t, spec); fault == "" {
			t.Errorf("an eightfold bias went unnoticed in %d cells", len(spec.cells))
		}
	}
}

func TestEstimates_ComeFromPairs(t *testing.T) {
	r, err := measure(context.Background(), plan{rounds: 6, duration: shortest, timed: shortest}, oneCell(nil)(0))
	if err != nil {
		t.Fatal(err)
	}
	row := r.Tables[0].Rows[0]
	var ratios []float64
	for i := range row.Samples[result.Sync] {
		ratios = append(ratios, row.Samples[result.Sync2][i]/row.Samples[result.Sync][i])
	}
	if want := stats.Median(ratios); row.Ratio != want || row.Ratio.N != 6 {
		t.Errorf("ratio %+v, want the median of the pairs' ratios %+v", row.Ratio, want)
	}
}

func TestProgress_IsQuietInAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := newProgress(w)
	p.show(time.Second, time.Minute, "x")
	p.clear()
	w.Close()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != io.EOF || line != "" {
		t.Errorf("a pipe got %q, %v", line, err)
	}
}
