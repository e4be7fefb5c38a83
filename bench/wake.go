package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/sync2"
)

// dashed is a name as a part of a benchmark's name.
func dashed(name string) string { return strings.ReplaceAll(name, " ", "-") }

// needKernel is why a command that compares with the kernel's futex cannot run here, nil if it can.
func needKernel() error {
	if err := futex.Missing(); err != nil {
		return usageError{err}
	}
	return nil
}

// crowdFlags are those of the commands in which a crowd waits.
type crowdFlags struct {
	G []int `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines that wait, the kernel's on a thread each. Default 8,128."`
}

func (f *crowdFlags) run(b *bench, name string, tables func(crowds []int) []tableSpec) error {
	crowds := f.G
	if len(crowds) == 0 {
		crowds = defaultCrowds
	}
	for _, n := range crowds {
		if n < 2 || n > 5_000 || n%2 != 0 {
			return usagef("-g %d: want an even number from 2 to 5000 goroutines", n)
		}
	}
	if err := needKernel(); err != nil {
		return err
	}
	return b.run(name, func(procs int) []tableSpec { return withAllProcs(tables(crowds), procs) })
}

var defaultCrowds = []int{8, 128}

// withAllProcs sets GOMAXPROCS of every cell.
func withAllProcs(tables []tableSpec, procs int) []tableSpec {
	for i := range tables {
		for j := range tables[i].cells {
			tables[i].cells[j].procs = procs
		}
	}
	return tables
}

// crowdCell compares the table with the kernel.
func crowdCell(family, params, label string, g int, job func(futex.Futex) harness.Job) cell {
	made := func(f futexMaker) func() harness.Job {
		return func() harness.Job { return job(mustMake(f)) }
	}
	return cell{
		name: fmt.Sprintf("%s/g=%d%s", family, g, params), label: label, params: map[string]int{"g": g},
		of: armPrivate, base: armKernel,
		jobs: map[string]func() harness.Job{
			armPrivate: made(futex.Table{Slots: 256}),
			armKernel:  made(futex.Kernel{Blocking: true}),
		},
		rows: []rowSpec{{measure: result.Time}},
	}
}

type wakeCmd struct{ crowdFlags }

func (c *wakeCmd) Help() string {
	return `perf bench futex wake for a parking.Table: one goroutine wakes a crowd that waits on one word, one per call or many.
Beside it the kernel's futex with as many threads. What is timed is the calls, not the running of those that they wake.

Example: go run ./bench wake -g 64

A time of 0.30x means that to wake one of the crowd takes the table 0.3 times as long as the kernel.`
}

func (c *wakeCmd) Run(b *bench) error { return c.run(b, "wake", wakeTables) }

func wakeTables(crowds []int) []tableSpec {
	t := tableSpec{name: "wake", title: "Waking a crowd on one word", note: "ns of the waker per goroutine woken"}
	for _, g := range crowds {
		for _, n := range []int{1, g} {
			t.cells = append(t.cells, crowdCell("Wake", fmt.Sprintf("/percall=%d", n), fmt.Sprintf("%d waiters, %d per call", g, n), g,
				func(f futex.Futex) harness.Job { return futex.Wake(f, g, n) }))
		}
	}
	return []tableSpec{t}
}

type wakeParallelCmd struct{ crowdFlags }

func (c *wakeParallelCmd) Help() string {
	return `perf bench futex wake-parallel for a parking.Table: as many goroutines as there are Ps wake their part of a crowd on one
word at the same time, each in one call. Beside it the kernel's futex with as many threads.

Example: go run ./bench wake-parallel -g 64

A time of 0.30x means that a call returns after 0.3 times as long as the kernel's.`
}

func (c *wakeParallelCmd) Run(b *bench) error {
	return c.run(b, "wake-parallel", wakeParallelTables)
}

func wakeParallelTables(crowds []int) []tableSpec {
	t := tableSpec{name: "wake-parallel", title: "Waking a crowd on one word from several goroutines", note: "ns per call"}
	for _, g := range crowds {
		wakers := min(g, max(2, runtime.GOMAXPROCS(0)))
		for g%wakers != 0 {
			wakers--
		}
		t.cells = append(t.cells, crowdCell("WakeParallel", fmt.Sprintf("/wakers=%d", wakers), fmt.Sprintf("%d waiters, %d wakers", g, wakers), g,
			func(f futex.Futex) harness.Job { return futex.WakeParallel(f, g, wakers) }))
	}
	return []tableSpec{t}
}

type requeueCmd struct{ crowdFlags }

func (c *requeueCmd) Help() string {
	return `perf bench futex requeue for a parking.Table: one goroutine moves a crowd from one word to another without waking anybody,
one per call or all. Beside it the kernel's futex with as many threads.

Example: go run ./bench requeue -g 64

A time of 0.30x means that to move one of the crowd takes the table 0.3 times as long as the kernel.`
}

func (c *requeueCmd) Run(b *bench) error { return c.run(b, "requeue", requeueTables) }

func requeueTables(crowds []int) []tableSpec {
	t := tableSpec{name: "requeue", title: "Moving a crowd to another word", note: "ns per goroutine moved"}
	for _, g := range crowds {
		for _, n := range []int{1, g} {
			t.cells = append(t.cells, crowdCell("Requeue", fmt.Sprintf("/percall=%d", n), fmt.Sprintf("%d waiters, %d per call", g, n), g,
				func(f futex.Futex) harness.Job { return futex.Requeue(f, g, n) }))
		}
	}
	return []tableSpec{t}
}

type handoffCmd struct {
	G []int `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines, the kernel's on a thread each. Default 1,2,8."`
}

func (c *handoffCmd) Help() string {
	return `perf bench futex lock-pi for a parking.Table: a lock that is always handed to who has waited the longest, made from the
table's Park and UnparkOne in 40 lines, beside the kernel's priority-inheriting futex, which does the same between threads.
sync and sync2 do not hand over, but when somebody has waited for long.

Example: go run ./bench handoff -g 4

A throughput of 5.00x means five times as many sections as with the kernel's lock. That sync and sync2 are far ahead of both
is the price of handing over: every section waits for a goroutine to be scheduled.`
}

func (c *handoffCmd) Run(b *bench) error {
	for _, g := range c.G {
		if g < 1 || g > 5_000 {
			return usagef("-g %d: want 1 to 5000 goroutines", g)
		}
	}
	if err := needKernel(); err != nil {
		return err
	}
	return b.run("handoff", func(procs int) []tableSpec { return withAllProcs(handoffTables(c.G), procs) })
}

func handoffTables(goroutines []int) []tableSpec {
	const inside, outside = 200, 200
	if len(goroutines) == 0 {
		goroutines = []int{1, 2, 8}
	}
	t := tableSpec{name: "handoff", title: "A lock that is handed over", note: fmt.Sprintf("ns per section of all goroutines together, %d steps of work inside and %d outside", inside, outside)}
	for _, g := range goroutines {
		t.cells = append(t.cells, cell{
			name: fmt.Sprintf("HandOff/g=%d", g), label: fmt.Sprintf("%d goroutines", g), params: map[string]int{"g": g},
			of: peerHandOff, base: armKernel, peers: []string{result.Sync, result.Sync2},
			jobs: map[string]func() harness.Job{
				armKernel:    func() harness.Job { return futex.ClosedPI(g, inside, outside) },
				peerHandOff:  func() harness.Job { return futex.Closed(futex.NewHandOff(), g, inside, outside) },
				result.Sync:  func() harness.Job { return futex.Closed(new(sync.Mutex), g, inside, outside) },
				result.Sync2: func() harness.Job { return futex.Closed(new(sync2.Mutex), g, inside, outside) },
			},
			rows: []rowSpec{{measure: result.Throughput}},
		})
	}
	return []tableSpec{t}
}
