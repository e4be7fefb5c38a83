package main

import (
	"fmt"
	"runtime"

	"github.com/hqsync/hqsync/bench/internal/result"
)

type headlineCmd struct{}

func (c *headlineCmd) Help() string {
	return `Measures a few cases of each primitive on sync2 and on sync, side by side, in about half a minute.

Example: go run ./bench -json /tmp/headline.json

A speed of 1.80x means that sync2 does 1.8 times as much in the same time; 95 times in a hundred the true figure lies in
the interval beside it. The last column is sync measured against itself: what it shows is noise, so a speed within the same
distance from 1 is no difference. Close other programs, or repeat, if that column strays far from 1.`
}

func (c *headlineCmd) Run(b *bench) error {
	return b.run("headline", headlineTables)
}

// headlineTables picks cells of the other commands, all as speed: one direction to read.
func headlineTables(procs int) []tableSpec {
	ps := procs
	if ps == 0 {
		ps = runtime.GOMAXPROCS(0)
	}
	t := tableSpec{
		name: "headline", title: "sync2 against sync",
		note:  "ns per operation of all goroutines together, and how many times as many operations sync2 does in the same time",
		cells: []cell{mutexAloneCell(result.Speed, nil)},
	}
	for _, g := range []int{2, 16, 1024} {
		c := mutexCell("Mutex", g, workPair{20, 20}, result.Speed, result.AtLeast(0.95))
		c.label = fmt.Sprintf("Mutex, %d goroutines", g)
		t.cells = append(t.cells, c)
	}
	t.cells = append(t.cells,
		labelled("RWMutex, reader alone", rwReadAloneCell("RWMutexReadAlone/after=nothing", "", 0, result.Speed, result.AtLeast(1/1.05))),
		labelled("RWMutex, readers on all Ps", rwReadAllCell(ps, result.Speed, result.AtLeast(2))),
		labelled("Cond, broadcast to 1000", condBroadcastCell(1000, 0, true, result.Speed, result.AtLeast(1/0.5))),
		labelled("WaitGroup, fork and join 100", forkJoinCell(100, result.Speed, result.AtLeast(1/1.05))))
	for i := range t.cells {
		t.cells[i].procs = procs
	}
	return []tableSpec{t}
}

func labelled(label string, c cell) cell {
	c.label = label
	return c
}
