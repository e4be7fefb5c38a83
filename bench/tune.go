package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/sync2"
)

type tuneCmd struct {
	Slice []time.Duration `placeholder:"TIME" default:"20us,100us,300us,3ms" help:"Values of the tunable slice."`
	Spin  []time.Duration `placeholder:"TIME" default:"0s,1us,10us,50us" help:"Values of the tunable spin."`
}

func (c *tuneCmd) Help() string {
	return `Measures a part of the contended grid, throughput and waits, on sync2 with other values of its tunables, one changed at a
time, in the same run as on sync and on sync2 as it is. The defaults were chosen by this table.

Example: go run ./bench tune -slice 50us,200us -spin 2us

A column slice=50us with 1.10x in a row of throughput means 10 % more sections than sync's in the same time. A default is
right if no column has a better mean throughput without a longer mean wait, by more than sync/sync strays from 1. The
environment variable SYNC2=slice=50us makes a value that of any program. With sync2_std nothing can differ.`
}

func (c *tuneCmd) Run(b *bench) error {
	var arms []string
	tunables := map[string]sync2.Tunables{}
	now := sync2.CurrentTunables()
	add := func(key string, d time.Duration, t sync2.Tunables) {
		arm := strings.Replace(fmt.Sprintf("%s=%v", key, d), "µ", "u", 1)
		arms, tunables[arm] = append(arms, arm), t
	}
	for _, d := range c.Slice {
		t := now
		t.Slice = d
		add("slice", d, t)
	}
	for _, d := range c.Spin {
		t := now
		t.Spin = d
		add("spin", d, t)
	}
	for arm, t := range tunables {
		if err := sync2.SetTunables(t); err != nil {
			return usagef("-%s: %w", strings.Replace(arm, "=", " ", 1), err)
		}
	}
	prepare := func(arm string) (restore func()) {
		if t, ok := tunables[arm]; ok {
			mustTune(t)
		}
		return func() { mustTune(now) }
	}
	mustTune(now)
	return b.run("tune", func(procs int) []tableSpec { return tuneTables(arms, procs, prepare) })
}

// mustTune sets tunables that have been checked before.
func mustTune(t sync2.Tunables) {
	if err := sync2.SetTunables(t); err != nil {
		panic(err)
	}
}

// tuneTables picks cells of the contended grid.
func tuneTables(arms []string, procs int, prepare func(string) func()) []tableSpec {
	throughput := tableSpec{
		name: "tune", title: "Mutex with other tunables: throughput", note: "ns per section of all goroutines together; columns against sync",
		means: map[result.Measure]*result.Target{result.Throughput: nil},
	}
	waits := tableSpec{
		name: "tune-waits", title: "Mutex with other tunables: waits", note: "every Lock timed, in runs of their own; columns against sync",
		means: map[result.Measure]*result.Target{result.WaitP999: nil, result.WaitMax: nil},
	}
	for _, g := range []int{2, 16, 1024} {
		for _, w := range []workPair{{0, 100}, {20, 20}, {200, 200}} {
			throughput.cells = append(throughput.cells, mutexCell("Tune", g, w, result.Throughput, nil))
			c := mutexCell("TuneWait", g, w, result.WaitP999, nil)
			c.rows = append(c.rows, rowSpec{measure: result.WaitMax})
			c.timed = true
			waits.cells = append(waits.cells, c)
		}
	}
	tables := []tableSpec{throughput, waits}
	for _, table := range tables {
		for i := range table.cells {
			c := &table.cells[i]
			c.peers, c.procs, c.prepare = arms, procs, prepare
		}
	}
	return tables
}
