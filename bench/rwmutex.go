package main

import (
	"fmt"
	"runtime"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

type rwmutexCmd struct {
	Peers bool `negatable:"" default:"true" help:"Measure xsync.RBMutex as well; its row of the targets needs it."`
}

func (c *rwmutexCmd) Help() string {
	return `Measures RWMutex with readers only, alone and on all Ps, with 1 % and 10 % writes, and as a writer only; and in runs of
their own how long writers wait.

Example: go run ./bench rwmutex -filter Read

A throughput of 2.00x means twice as many sections in the same time, a time of 0.65x that RLock and RUnlock together take
0.65 times as long as sync's. "after reads on all Ps" shows what is left, for a single reader, once the lock has seen
readers on several Ps. The rows with steps inside have no target: they show how much of the gain a real section leaves.`
}

func (c *rwmutexCmd) Run(b *bench) error {
	return b.run("rwmutex", func(procs int) []tableSpec { return rwmutexTables(procs, c.Peers) })
}

// rwmutexTables makes the tables for that number of Ps, 0 for the present one.
func rwmutexTables(procs int, withPeers bool) []tableSpec {
	ps := procs
	if ps == 0 {
		ps = runtime.GOMAXPROCS(0)
	}
	t := tableSpec{
		name: "rwmutex", title: "RWMutex", note: "ns per section of all goroutines together; sections are empty unless the row says otherwise",
		cells: []cell{
			rwReadAloneCell("RWMutexReadAlone/after=nothing", "reader alone", 0, result.Time, result.AtMost(1.05)),
			rwReadAloneCell("RWMutexReadAlone/after=all", "reader alone, after reads on all Ps", ps, result.Time, together(ps, result.AtMost(0.65))),
			rwReadAllCell(ps, result.Throughput, result.AtLeast(2)),
			rwMixCell(ps, 100, 0, result.AtLeast(1.3)),
			rwMixCell(ps, 10, 0, result.AtLeast(1.3)),
			rwMixCell(ps, 100, 100, nil),
			rwMixCell(ps, 10, 100, nil),
			{
				name: "RWMutexWriteAlone", label: "writer alone",
				job:  func(s workload.Set) harness.Job { return s.RWMutexWriteAlone() },
				rows: []rowSpec{{measure: result.Time, target: result.AtMost(1.1)}},
			},
		},
	}
	if withPeers {
		for i := range t.cells[:len(t.cells)-1] {
			t.cells[i].peers = []string{peerRBMutex}
		}
		// A row of its own beside the one against sync, from the same samples.
		t.cells[2].rows = append(t.cells[2].rows, rowSpec{measure: result.Throughput, target: together(ps, result.AtLeast(1)), against: peerRBMutex})
	}
	waits := tableSpec{
		name: "rwmutex-waits", title: "RWMutex: waits of writers",
		note: "every write Lock timed, in runs of their own; the longest of a sample, median over the samples",
	}
	for _, nth := range []int{100, 10} {
		c := rwMixCell(ps, nth, 0, nil)
		c.name, c.timed = "RWMutexWait"+c.name[len("RWMutexMix"):], true
		c.rows = []rowSpec{{measure: result.WaitMax, target: result.AtMost(1.5)}, {measure: result.WaitP999}}
		waits.cells = append(waits.cells, c)
	}
	tables := []tableSpec{t, waits}
	for _, table := range tables {
		for i := range table.cells {
			table.cells[i].procs = procs
		}
	}
	return tables
}

// together returns the target if there is more than one P to read on.
func together(ps int, target *result.Target) *result.Target {
	if ps < 2 {
		return nil
	}
	return target
}

func rwReadAloneCell(name, label string, warm int, m result.Measure, target *result.Target) cell {
	return cell{
		name: name, label: label,
		job:  func(s workload.Set) harness.Job { return s.RWMutexReadAlone(warm) },
		rows: []rowSpec{{measure: m, target: target}},
	}
}

func rwReadAllCell(ps int, m result.Measure, target *result.Target) cell {
	return cell{
		name: fmt.Sprintf("RWMutexRead/g=%d", ps), label: fmt.Sprintf("readers on all Ps (%d)", ps), params: map[string]int{"g": ps},
		job:  func(s workload.Set) harness.Job { return s.RWMutexRead(ps) },
		rows: []rowSpec{{measure: m, target: together(ps, target)}},
	}
}

func rwMixCell(ps, nth, in int, target *result.Target) cell {
	label := fmt.Sprintf("%d %% writes on all Ps", 100/nth)
	if in > 0 {
		label += fmt.Sprintf(", %d steps", in)
	}
	return cell{
		name: fmt.Sprintf("RWMutexMix/g=%d/writes=%d%%/in=%d", ps, 100/nth, in), label: label,
		job:  func(s workload.Set) harness.Job { return s.RWMutexMix(ps, nth, in) },
		rows: []rowSpec{{measure: result.Throughput, target: together(ps, target)}},
	}
}
