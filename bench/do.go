package main

import (
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

type doCmd struct{}

func (c *doCmd) Help() string {
	return `Measures Mutex.Do(f) against Lock, f, Unlock of sync: alone, and with 16 to 1024 goroutines in a closed loop, for short
functions.

Example: go run ./bench do -filter g=16/

A throughput of 2.00x means that twice as many functions were called in the same time. The column unlocked calls them
without any lock, each goroutine on data of its own: its ratio is what a lock could reach at the very most, on a machine
of so few CPUs often less than 2. With -procs 16 threads that wait lose their CPUs, and whoever holds the lock calls
their functions in batches.`
}

func (c *doCmd) Run(b *bench) error {
	return b.run("do", func(procs int) []tableSpec { return doTables(procs) })
}

func doTables(procs int) []tableSpec {
	alone := tableSpec{
		name: "do-alone", title: "Mutex.Do, one goroutine", note: "ns per call, against Lock, f, Unlock",
		cells: []cell{{
			name: "DoUncontended", label: "Do, uncontended",
			job:  func(s workload.Set) harness.Job { return s.DoAlone() },
			rows: []rowSpec{{measure: result.Time}},
		}},
	}
	grid := tableSpec{
		name: "do", title: "Mutex.Do against Lock, f, Unlock of sync: throughput",
		note:  "ns per call of all goroutines together; g goroutines in a closed loop, in/out steps of work in f and outside",
		means: map[result.Measure]*result.Target{result.Throughput: result.AtLeast(2)},
	}
	for _, g := range []int{16, 128, 1024} {
		for _, w := range []workPair{{0, 0}, {0, 100}, {20, 20}, {20, 200}} {
			c := mutexCell("Do", g, w, result.Throughput, nil)
			c.job = func(s workload.Set) harness.Job { return s.Do(g, w.in, w.out) }
			c.peers = []string{peerUnlocked}
			grid.cells = append(grid.cells, c)
		}
	}
	tables := []tableSpec{alone, grid}
	for _, table := range tables {
		for i := range table.cells {
			table.cells[i].procs = procs
		}
	}
	return tables
}
