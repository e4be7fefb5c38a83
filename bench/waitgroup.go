package main

import (
	"fmt"
	"runtime"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

type waitgroupCmd struct{}

func (c *waitgroupCmd) Help() string {
	return `Measures one goroutine that starts 1 to 1000 others and waits for them, and Add(1) followed by Done alone and on all Ps.

Example: go run ./bench waitgroup -filter ForkJoin

A time of 1.00x means no difference, and that is the aim: sync.WaitGroup is a single atomic word already, and most of a
fork-join is the starting of goroutines. Above 1.05x something got lost.`
}

func (c *waitgroupCmd) Run(b *bench) error {
	return b.run("waitgroup", func(procs int) []tableSpec { return waitgroupTables(procs) })
}

func waitgroupTables(procs int) []tableSpec {
	ps := procs
	if ps == 0 {
		ps = runtime.GOMAXPROCS(0)
	}
	limit := result.AtMost(1.05)
	t := tableSpec{name: "waitgroup", title: "WaitGroup", note: "ns per fork-join of n goroutines, and per Add and Done"}
	for _, n := range []int{1, 10, 100, 1000} {
		t.cells = append(t.cells, forkJoinCell(n, result.Time, limit))
	}
	t.cells = append(t.cells, addDoneCell(1, limit))
	if ps > 1 {
		t.cells = append(t.cells, addDoneCell(ps, limit))
	}
	for i := range t.cells {
		t.cells[i].procs = procs
	}
	return []tableSpec{t}
}

func forkJoinCell(n int, m result.Measure, target *result.Target) cell {
	return cell{
		name: fmt.Sprintf("WaitGroupForkJoin/n=%d", n), label: fmt.Sprintf("fork and join %d", n),
		job:  func(s workload.Set) harness.Job { return s.WaitGroupForkJoin(n) },
		rows: []rowSpec{{measure: m, target: target}},
	}
}

func addDoneCell(g int, target *result.Target) cell {
	label := "Add and Done"
	if g > 1 {
		label = fmt.Sprintf("Add and Done on all Ps (%d)", g)
	}
	return cell{
		name: fmt.Sprintf("WaitGroupAddDone/g=%d", g), label: label,
		job:  func(s workload.Set) harness.Job { return s.WaitGroupAddDone(g) },
		rows: []rowSpec{{measure: result.Time, target: target}},
	}
}
