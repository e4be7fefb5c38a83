package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
	"github.com/hqsync/hqsync/sync2"
)

// A parkedSize is a number of goroutines and of the mutexes that they wait for.
type parkedSize struct{ waiters, mutexes int }

// judgedSize is what the targets are for.
var judgedSize = parkedSize{100_000, 10_000}

// parkedSizes are the default, the smallest first.
var parkedSizes = []parkedSize{{1_000, 1}, {1_000, 1_000}, {10_000, 100}, {100_000, 1}, judgedSize, {100_000, 100_000}, {1_000_000, 100_000}}

// A round of many waiters takes seconds. With -quick only the judged size has more than quickMost; longMost and more are
// measured longRounds times, too few for an interval.
const (
	quickMost  = 10_000
	longMost   = 1_000_000
	longRounds = 2
)

// wakeTime is about what it takes to park a goroutine and to wake it.
const wakeTime = 10 * time.Microsecond

type parkedCmd struct {
	G       int `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines, in one row only; with -mutexes."`
	Mutexes int `placeholder:"N" help:"Mutexes that they wait for."`
}

func (c *parkedCmd) Help() string {
	return `Parks 1,000 to 1,000,000 goroutines in Lock of 1 to 100,000 mutexes that one goroutine holds. Then that one unlocks them in
turn, so that every Unlock wakes one goroutine, until all have had theirs. It measures what the goroutines take of memory,
stack and record of the waiter included, after a garbage collection, and CPU time: of the thread that unlocks, and of the
process, for each wake-up. A million are measured twice only, and with -quick not at all. The runtime's table is a tree of addresses in each of 251 buckets, with a list for each address.

Example: go run ./bench parked -g 100000 -mutexes 10000
Example: go run ./bench parked -quick -check

bytes of 0.98x mean that a waiting goroutine takes 2 % less; a waker cpu of 0.60x that an Unlock costs 0.6 times as much
where it is paid. A large ratio of bytes, such as 1.40x, means that stacks had to grow for the goroutines to wait.`
}

func (c *parkedCmd) Run(b *bench) error {
	sizes := parkedSizes
	switch {
	case c.G == 0 && c.Mutexes == 0:
		if b.Quick {
			sizes = nil
			for _, s := range parkedSizes {
				if s.waiters <= quickMost || s == judgedSize {
					sizes = append(sizes, s)
				}
			}
		}
	case c.G < 1 || c.G > 2_000_000:
		return usagef("-g %d: want 1 to 2000000 goroutines", c.G)
	case c.Mutexes < 1 || c.Mutexes > c.G:
		return usagef("-mutexes %d: want 1 to the number of goroutines, %d", c.Mutexes, c.G)
	default:
		sizes = []parkedSize{{c.G, c.Mutexes}}
	}
	return b.run("parked", func(procs int) []tableSpec { return parkedTables(sizes, procs) })
}

// parkedTables has two cells for each size: one for memory and everybody's CPU time, and one for the waker's.
func parkedTables(sizes []parkedSize, procs int) []tableSpec {
	t := tableSpec{
		name: "parked", title: "Goroutines that wait for mutexes, and waking them one by one",
		note: "memory for each goroutine, CPU time for each wake-up; sync2 hands no mutex over while the waker's is measured, since its thread would wait for the new owner",
	}
	for _, s := range sizes {
		var waker, total, bytes *result.Target
		if s == judgedSize {
			waker, total, bytes = result.AtMost(0.6), result.AtMost(0.95), result.AtMost(1)
		}
		t.cells = append(t.cells,
			parkedCell("Parked", s, procs, wakeAll, []rowSpec{{measure: result.Bytes, target: bytes}, {measure: result.TotalCPU, target: total}}),
			parkedCell("ParkedWaker", s, procs, wakeAlone, []rowSpec{{measure: result.WakerCPU, target: waker}}))
	}
	return []tableSpec{t}
}

// A waking wakes all and returns what it measured, in all.
type waking func(workload.Parked, parkedSize) map[result.Measure]time.Duration

func parkedCell(family string, s parkedSize, procs int, wake waking, rows []rowSpec) cell {
	rounds := 0
	if s.waiters >= longMost {
		rounds = longRounds
	}
	return cell{
		name:   fmt.Sprintf("%s/waiters=%d/mutexes=%d", family, s.waiters, s.mutexes),
		label:  fmt.Sprintf("%d on %d mutexes", s.waiters, s.mutexes),
		params: map[string]int{"waiters": s.waiters, "mutexes": s.mutexes},
		procs:  procs,
		lasts:  time.Duration(s.waiters) * wakeTime,
		rounds: rounds,
		take: func(ctx context.Context, arm string, _ time.Duration) (harness.Sample, error) {
			return park(ctx, arm, s, wake)
		},
		rows: rows,
	}
}

// park takes a sample.
func park(ctx context.Context, arm string, size parkedSize, wake waking) (harness.Sample, error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64)) // what is measured may be larger
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	p := implementation(arm).Parked(size.waiters, size.mutexes)
	tidy()
	idle, before := waitingGoroutines(), memoryInUse()
	p.Start()
	for waitingGoroutines() < idle+uint64(size.waiters) && ctx.Err() == nil { // else they are let go all the same
		time.Sleep(time.Millisecond)
	}
	tidy()
	each := func(x float64) float64 { return x / float64(size.waiters) }
	values := map[string]float64{string(result.Bytes): each(float64(memoryInUse()) - float64(before))}
	for m, d := range wake(p, size) {
		values[string(m)] = each(float64(d))
	}
	return harness.Sample{Ops: uint64(size.waiters), Values: values}, ctx.Err()
}

// wakeAll wakes one goroutine of each mutex at a time, and measures the CPU time of the process.
func wakeAll(p workload.Parked, size parkedSize) map[result.Measure]time.Duration {
	begin := harness.CPUTime()
	for left := size.waiters; left > 0; left -= size.mutexes {
		p.Wake(min(left, size.mutexes))
		<-p.Passed
	}
	return map[result.Measure]time.Duration{result.TotalCPU: harness.CPUTime() - begin}
}

// wakeAlone is wakeAll on a thread of its own, and measures the CPU time that this spends on it. To hand a mutex over
// the waker yields to the new owner, which here would mean to another thread and back: so nothing is handed over.
func wakeAlone(p workload.Parked, size parkedSize) map[result.Measure]time.Duration {
	before := sync2.CurrentTunables()
	defer mustTune(before)
	tuned := before
	tuned.Slice = time.Second
	mustTune(tuned)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var spent time.Duration
	for left := size.waiters; left > 0; left -= size.mutexes {
		start := harness.ThreadTime()
		p.Wake(min(left, size.mutexes))
		spent += harness.ThreadTime() - start
		<-p.Passed
	}
	return map[result.Measure]time.Duration{result.WakerCPU: spent}
}

// tidy frees what can be freed. The second collection empties the pools, too.
func tidy() {
	runtime.GC()
	runtime.GC()
}

func waitingGoroutines() uint64 { return sumOf("/sched/goroutines/waiting:goroutines") }

// memoryInUse is the memory of spans that hold objects or stacks.
func memoryInUse() uint64 {
	return sumOf("/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/stacks:bytes")
}

func sumOf(names ...string) (sum uint64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}
