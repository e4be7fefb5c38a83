// Command bench compares sync2 with sync on this machine.
//
// Without a command it measures the headline comparison in about half a minute, prints one table of ratios with their
// 95 % intervals and writes bench/out/report.html. Run it with -h for the other commands.
//
// The exit status is 0, 1 if something failed or, with -check, a target was missed, 2 if the command line or the
// output directory is of no use, 130 after an interrupt.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/hqsync/hqsync/bench/internal/report"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// A command is what kong runs: its fields are its flags, Help explains it.
type command struct {
	name, help string
	flags      func() any
	tags       []string
}

// commands is the registry.
var commands = []command{
	{"headline", "The comparison in half a minute. Runs if no command is named.", fresh[headlineCmd], []string{`default:"withargs"`}},
	{"mutex", "Mutex: uncontended, the contended grid, waits, oversubscribed.", fresh[mutexCmd], nil},
	{"rwmutex", "RWMutex: readers, mixtures, writers and their waits.", fresh[rwmutexCmd], nil},
	{"cond", "Cond: broadcast to a crowd, ping-pong.", fresh[condCmd], nil},
	{"waitgroup", "WaitGroup: fork and join, Add and Done.", fresh[waitgroupCmd], nil},
	{"do", "Mutex.Do: functions under a lock, in batches.", fresh[doCmd], nil},
	{"hash", "parking.Table: refused waits by slots and design, beside the kernel's futex.", fresh[hashCmd], nil},
	{"wake", "parking.Table: waking a crowd, beside the kernel's futex.", fresh[wakeCmd], nil},
	{"wake-parallel", "parking.Table: waking a crowd from several goroutines, beside the kernel's futex.", fresh[wakeParallelCmd], nil},
	{"requeue", "parking.Table: moving a crowd to another word, beside the kernel's futex.", fresh[requeueCmd], nil},
	{"handoff", "parking.Table: a lock that is handed over, beside the kernel's PI futex.", fresh[handoffCmd], nil},
	{"parked", "Goroutines that wait for mutexes: memory, and the CPU time of waking them.", fresh[parkedCmd], nil},
	{"tune", "Mutex with other values of its tunables.", fresh[tuneCmd], nil},
	{"service", "Whole servers under load generators: kv, http.", fresh[serviceCmd], nil},
	{"spin", "hq.Lock, the lock of a bucket, beside the spin locks of the literature.", fresh[spinCmd], nil},
	{"torture", "Use every lock as roughly as a program can and watch that nothing is lost.", fresh[tortureCmd], nil},
	{"numasim", "Locks and tables on machines that are not here, modelled. Needs -tags sim.", fresh[numasimCmd], nil},
	{"all", "Everything, into one report.", fresh[allCmd], nil},
	{"show", "Print a result that was kept as JSON.", fresh[showCmd], nil},
	{"instructions", "Count the instructions of uncontended operations.", fresh[instructionsCmd], nil},
	{"topology", "Print the machine as the locks see it: domains, NUMA nodes, distances.", fresh[topologyCmd], nil},
}

// fresh returns flags that nobody has set.
func fresh[T any]() any { return new(T) }

// commonFlags are the flags of every command.
type commonFlags struct {
	Quick   bool          `help:"A few seconds instead of minutes: short samples, and only as many as an interval needs."`
	D       time.Duration `short:"d" name:"duration" placeholder:"TIME" help:"Length of a sample; timed waits take twice as long. Default 90ms to 100ms, -quick 30ms; of torture and service see their help."`
	Turn    time.Duration `default:"20us" help:"While waits are timed, a goroutine that does not block lets others run after this time; 0: never, and Go's 10 ms time slice is what is measured."`
	Samples int           `placeholder:"N" help:"Samples of each row, at least 6. Default 10 (headline 12), -quick 6."`
	Procs   []int         `placeholder:"N" help:"Repeat everything with these values of GOMAXPROCS."`
	Filter  string        `placeholder:"REGEXP" help:"Measure only the rows whose name matches, such as g=16/ or RWMutexRead."`
	Check   bool          `help:"Compare with the targets; exit with status 1 if one is missed."`
	JSON    string        `name:"json" placeholder:"FILE" help:"Write the result to this file as well."`
	Out     string        `short:"o" placeholder:"DIR" help:"Directory of the report, - for no report. Default bench/out of this repository."`
}

// bench is what a command gets: the flags and where to print.
type bench struct {
	commonFlags
	stdout, stderr io.Writer
	planned        *time.Duration // if not nil, only the time is asked for that the command would take
}

// without returns an error if one of the named common flags is set, with which the command could do nothing.
func (b *bench) without(command string, flags ...string) error {
	set := map[string]bool{
		"d": b.D != 0, "samples": b.Samples != 0, "procs": len(b.Procs) > 0, "filter": b.Filter != "", "json": b.JSON != "", "out": b.Out != "",
	}
	for _, flag := range flags {
		if set[flag] {
			return usagef("%s takes no -%s", command, flag)
		}
	}
	return nil
}

// The exit statuses besides 0.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError is a request that cannot be carried out as it stands: one line says what to do.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

var (
	errMissed      = errors.New("a target was missed")
	errInterrupted = errors.New("interrupted")
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	err := (&bench{stdout: stdout, stderr: stderr}).execute(args)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "bench: %s\n", oneLine(err))
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "bench: %s\n", oneLine(err))
	return exitFailed
}

// oneLine returns the error's text without line ends and without our own prefix.
func oneLine(err error) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "bench: ")
}

// execute parses the command line and runs its command.
func (b *bench) execute(args []string) error {
	parser, err := b.parser()
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(doubleDashes(args))
	if err != nil {
		return usagef("%w; 'go run ./bench -h' lists commands and flags", err)
	}
	return parsed.Run(b)
}

// parser returns a parser of command lines, which sets the common flags of b.
func (b *bench) parser() (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("bench"),
		kong.Description("Compares sync2 with sync on this machine. Flags may be written with one dash or two. " +
			"Run 'go run ./bench COMMAND -h' for what a command measures and what its result would mean."),
		kong.Writers(b.stdout, b.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
	}
	for _, c := range commands {
		options = append(options, kong.DynamicCommand(c.name, c.help, "", c.flags(), c.tags...))
	}
	return kong.New(&b.commonFlags, options...)
}

var (
	longFlag  = regexp.MustCompile(`^-[a-z][a-z-]+(=|$)`)
	shortFlag = regexp.MustCompile(`^-[a-z]=`)
)

// doubleDashes lets flags be written as everywhere in Go: long ones with one dash, short ones with an equals sign. No
// flag combines with another behind one dash, so nothing else can be meant.
func doubleDashes(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		switch out[i] = arg; {
		case longFlag.MatchString(arg):
			out[i] = "-" + arg
		case shortFlag.MatchString(arg):
			out[i] = arg[:2] + arg[3:]
		}
	}
	return out
}

// memoryLimit lets the garbage collector run even during a sample rather than take the machine's memory.
const memoryLimit = 2 << 30

// run measures the tables, prints them and writes the report.
func (b *bench) run(name string, tables func(procs int) []tableSpec) error {
	p, err := b.plan(name)
	if err != nil {
		return err
	}
	specs, err := b.tables(tables)
	if err != nil {
		return err
	}
	out, err := newOutput(b.Out, name, b.JSON)
	if err != nil {
		return err
	}
	if !b.announce(p.total(specs), "") {
		return nil
	}
	if debug.SetMemoryLimit(-1) > memoryLimit {
		debug.SetMemoryLimit(memoryLimit)
	}

	ctx, stop := untilInterrupt()
	defer stop()
	bar := newProgress(b.stderr)
	p.progress = bar.show
	r, measureErr := measure(ctx, p, specs)
	bar.clear()
	return b.publish(r, out, measureErr)
}

// announce says how long the command is going to measure. It reports false if nobody wanted to know more.
func (b *bench) announce(d time.Duration, more string) bool {
	if b.planned != nil {
		*b.planned = d
		return false
	}
	fmt.Fprintf(b.stdout, "measuring for about %v%s\n", d.Round(time.Second), more)
	return true
}

// untilInterrupt returns a context that the first interrupt ends; a second one ends the process.
func untilInterrupt() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// publish prints the result, writes its report if there is something in it, and returns what the command comes to:
// failure, if not nil, is why the measurement ended early.
func (b *bench) publish(r *result.Result, out output, failure error) error {
	if err := report.Text(b.stdout, r, b.textOptions(r)); err != nil {
		return err
	}
	if len(r.Tables)+len(r.Sheets) > 0 {
		if err := out.write(r); err != nil {
			return err
		}
		if out.html != "" {
			fmt.Fprintf(b.stdout, "report: %s\n", out.html)
		}
	}
	switch {
	case r.Interrupted:
		return errInterrupted
	case failure != nil:
		return failure
	case b.Check && r.Count(result.Missed) > 0:
		return errMissed
	}
	return nil
}

// textOptions say how the result is printed: the headline's targets are for those who ask.
func (b *bench) textOptions(r *result.Result) report.TextOptions {
	return report.TextOptions{Verdicts: b.Check || r.Command != "headline"}
}

// plan returns how to measure, from the flags.
func (b *bench) plan(name string) (plan, error) {
	p := plan{command: name, rounds: 10, duration: 100 * time.Millisecond}
	if name == "headline" {
		p.rounds, p.duration = 12, 90*time.Millisecond
	}
	if b.Quick {
		p.rounds, p.duration = stats.MinSamples, 30*time.Millisecond
	}
	if b.Samples != 0 {
		p.rounds = b.Samples
	}
	if b.D != 0 {
		p.duration = b.D
	}
	if p.rounds < stats.MinSamples || p.rounds > 10_000 {
		return plan{}, usagef("-samples %d: want %d to 10000, fewer have no 95 %% interval", p.rounds, stats.MinSamples)
	}
	if p.duration < shortest || p.duration > time.Minute {
		return plan{}, usagef("-d %v: want %v to 1m", p.duration, shortest)
	}
	if b.Turn < 0 || b.Turn > time.Second {
		return plan{}, usagef("-turn %v: want 0 to 1s", b.Turn)
	}
	p.timed, p.turn = 2*p.duration, b.Turn
	return p, nil
}

// tables returns the tables that the flags select.
func (b *bench) tables(make func(procs int) []tableSpec) ([]tableSpec, error) {
	pattern, err := regexp.Compile(b.Filter)
	if err != nil {
		return nil, usagef("-filter: %w", err)
	}
	specs := make(0)
	if len(b.Procs) > 0 {
		specs = nil
		for _, procs := range b.Procs {
			if most := 64 * runtime.NumCPU(); procs < 1 || procs > most {
				return nil, usagef("-procs %d: want 1 to %d, 64 times the CPUs", procs, most)
			}
			specs = append(specs, withProcs(make(procs), procs)...)
		}
	}
	if twice := askedTwice(specs); twice != "" {
		return nil, usagef("%s would be measured twice; name each number once", twice)
	}
	example := specs[0].cells[0].name
	if specs = selectCells(specs, pattern); len(specs) == 0 {
		return nil, usagef("-filter %q matches no row; names look like %s", b.Filter, example)
	}
	return specs, nil
}

// askedTwice returns the name of a cell that its table has twice, "" if there is none: as -g 2,2 and -procs 4,4 make.
func askedTwice(specs []tableSpec) string {
	seen := map[[2]string]bool{}
	for _, spec := range specs {
		for _, c := range spec.cells {
			key := [2]string{spec.name, c.name}
			if seen[key] {
				return c.name
			}
			seen[key] = true
		}
	}
	return ""
}

// withProcs names the tables and rows by the number of Ps.
func withProcs(specs []tableSpec, procs int) []tableSpec {
	for i := range specs {
		spec := &specs[i]
		spec.name += fmt.Sprintf("-p%d", procs)
		spec.title += fmt.Sprintf(", GOMAXPROCS %d", procs)
		for j := range spec.cells {
			spec.cells[j].name += fmt.Sprintf("/p=%d", procs)
		}
	}
	return specs
}

// output is where a result goes, as a page and as JSON. What has no name is not wanted.
type output struct{ html, json, extra string }

// noReport is the directory of reports that nobody wants.
const noReport = "-"

// newOutput makes sure before anything is measured that the files can be written.
func newOutput(dir, name, extra string) (output, error) {
	if dir == "" {
		dir = defaultOut()
	}
	base := name
	if name == "headline" {
		base = "report"
	}
	if extra == noReport {
		return output{}, usagef("-json -: name a file; tables go to standard output")
	}
	o := output{html: filepath.Join(dir, base+".html"), json: filepath.Join(dir, base+".json"), extra: extra}
	if dir == noReport {
		o.html, o.json = "", ""
	} else if err := os.MkdirAll(dir, 0o777); err != nil {
		return output{}, usagef("cannot make the output directory (%w); name another with -out DIR", err)
	}
	for _, file := range []string{o.html, o.json, o.extra} {
		if file == "" {
			continue
		}
		if err := tryToWrite(file); err != nil {
			return output{}, usagef("cannot write (%w); name another directory with -out DIR or file with -json FILE", err)
		}
	}
	return o, nil
}

// tryToWrite opens the file for writing and leaves everything as it was.
func tryToWrite(name string) error {
	_, err := os.Stat(name)
	fresh := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	f.Close()
	if fresh {
		return os.Remove(name)
	}
	return nil
}

// defaultOut is bench/out of the repository around the current directory; without one, of the current directory.
func defaultOut() string {
	inside := filepath.Join("bench", "out")
	root, found := repository()
	if !found {
		return inside
	}
	whole := filepath.Join(root, inside)
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, whole); err == nil {
			return short
		}
	}
	return whole
}

// repository returns the root of the repository around the current directory.
func repository() (root string, found bool) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, e := os.Stat(filepath.Join(dir, "go.work")); e == nil {
			return dir, true
		}
	}
	return "", false
}

// writeAs writes a result in all forms: asPage and asJSON write one of them. No file changes before all forms are there:
// to draw a page takes a while, in which a second interrupt may end the process, and what there was is then still whole.
func (o output) writeAs(asPage, asJSON func(io.Writer) error) error {
	var page, data bytes.Buffer
	if o.html != "" {
		if err := asPage(&page); err != nil {
			return err
		}
	}
	if err := asJSON(&data); err != nil {
		return err
	}
	for _, file := range []struct {
		name     string
		contents *bytes.Buffer
	}{{o.html, &page}, {o.json, &data}, {o.extra, &data}} {
		if file.name == "" {
			continue
		}
		if err := os.WriteFile(file.name, file.contents.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (o output) write(r *result.Result) error {
	return o.writeAs(func(w io.Writer) error { return report.HTML(w, r) }, r.Write)
}
