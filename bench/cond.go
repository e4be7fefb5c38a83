package main

import (
	"fmt"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

type condCmd struct{}

func (c *condCmd) Help() string {
	return `Measures Cond.Broadcast to 1000 waiters, from the call until the last of them has been in the section, with an empty section
and with 100 steps in it, the lock held during Broadcast or not; and two goroutines that pass a turn to and fro by Signal.

Example: go run ./bench cond -filter waiters=1000

A time of 0.50x means that the crowd was through in half of sync's time. sync wakes all at once and lets them fight for
the lock; a Cond that moves the waiters over to the lock wakes them one after another as it becomes free.`
}

func (c *condCmd) Run(b *bench) error {
	return b.run("cond", func(procs int) []tableSpec { return condTables(procs) })
}

func condTables(procs int) []tableSpec {
	t := tableSpec{
		name: "cond", title: "Cond",
		note: "broadcast: from the call until all waiters have run under the lock; ping-pong: one turn of both",
	}
	for _, held := range []bool{true, false} {
		t.cells = append(t.cells,
			condBroadcastCell(1000, 0, held, result.Time, result.AtMost(0.5)),
			condBroadcastCell(1000, 100, held, result.Time, result.AtMost(0.4)))
	}
	t.cells = append(t.cells, cell{
		name: "CondPingPong", label: "ping-pong by Signal",
		job:  func(s workload.Set) harness.Job { return s.CondPingPong() },
		rows: []rowSpec{{measure: result.Time, target: result.AtMost(1.05)}},
	})
	for i := range t.cells {
		t.cells[i].procs = procs
	}
	return []tableSpec{t}
}

func condBroadcastCell(waiters, in int, held bool, m result.Measure, target *result.Target) cell {
	state, bit := "lock released", 0
	if held {
		state, bit = "lock held", 1
	}
	return cell{
		name:  fmt.Sprintf("CondBroadcast/waiters=%d/in=%d/held=%d", waiters, in, bit),
		label: fmt.Sprintf("broadcast to %d, %d steps, %s", waiters, in, state),
		job:   func(s workload.Set) harness.Job { return s.CondBroadcast(waiters, in, held) },
		rows:  []rowSpec{{measure: m, target: target}},
	}
}
