package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// A workPair is the number of steps inside and outside the section.
type workPair struct{ in, out int }

// The contended grid.
var (
	gridGoroutines = []int{2, 4, 16, 128, 1024}
	gridWork       = []workPair{{0, 0}, {0, 100}, {20, 20}, {20, 200}, {200, 200}, {1000, 200}}
)

// peerWork is the work with which all peers are measured, toys too.
var peerWork = workPair{20, 20}

// morePeers returns the peers that are measured with that work only. Toys that spin take seconds for a sample of many
// goroutines: they spin for one that does not run.
func morePeers(g int) []string {
	peers := []string{peerSharded, peerThunder, peerCascade, peerHandOff}
	if g > 16 {
		return peers
	}
	return append(peers, peerTAS, peerTicket)
}

// harmlessWait is the longest wait of which nobody complains, whatever package sync's is.
const harmlessWait = 20 * time.Millisecond

type mutexCmd struct {
	G     []int `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines of the contended grid instead of 2,4,16,128,1024."`
	Peers bool  `negatable:"" default:"true" help:"Measure a channel and x/sync/semaphore as well, and where there are 20 steps inside and outside, a lock in 64 shards and toys: tas, ticket, thunder, cascade, hand-off."`
}

func (c *mutexCmd) Help() string {
	return `Measures Mutex alone, then a grid of goroutines x steps of work inside and outside the section, in a closed loop: first
throughput, then, in runs of their own, the time that every single Lock waited. Last, with 8 times as many Ps as CPUs, so
that the system takes the CPU away from holders.

Example: go run ./bench mutex -filter 'g=16/' -no-peers

A throughput of 1.30x means 30 % more sections in the same time. A max wait of 0.40x means that the unluckiest Lock of a
run waited 0.4 times as long as with sync. Look at the sync/sync column first: it is sync against itself, and a ratio that
strays no further from 1 than that says nothing. "cpu" is CPU time per section against sync, "top half" the share of the
luckier half of the goroutines, .50 if all got the same. -procs 1,4,16 repeats the grid with these numbers of Ps; the
rows' target is then 0.90x.`
}

func (c *mutexCmd) Run(b *bench) error {
	for _, g := range c.G {
		if g < 1 || g > 100_000 {
			return usagef("-g %d: want 1 to 100000 goroutines", g)
		}
	}
	return b.run("mutex", func(procs int) []tableSpec { return mutexTables(c.G, procs, c.Peers) })
}

// mutexTables makes the tables. No goroutines: those of the grid. With procs, which is not 0 if -procs was given, only
// the grid is made, and held to the lower target for unusual numbers of Ps.
func mutexTables(goroutines []int, procs int, withPeers bool) []tableSpec {
	var peers []string
	if withPeers {
		peers = []string{peerChannel, peerSemaphore}
	}
	whole := goroutines == nil
	if whole {
		goroutines = gridGoroutines
	}
	grid := tableSpec{
		name: "mutex-grid", title: "Mutex under contention: throughput",
		note:  "ns per section of all goroutines together; g goroutines in a closed loop, in/out steps of work inside and outside",
		means: map[result.Measure]*result.Target{result.Throughput: nil},
	}
	floor := result.AtLeast(0.95)
	if whole && procs == 0 {
		grid.means[result.Throughput] = result.AtLeast(1.25)
	}
	if procs != 0 {
		floor = result.AtLeast(0.9)
	}
	for _, g := range goroutines {
		for _, w := range gridWork {
			c := mutexCell("Mutex", g, w, result.Throughput, floor)
			c.peers, c.procs = peers, procs
			if withPeers && w == peerWork {
				c.peers = append(slices.Clone(peers), morePeers(g)...)
			}
			grid.cells = append(grid.cells, c)
		}
	}
	if procs != 0 {
		return []tableSpec{grid}
	}
	alone := tableSpec{
		name: "mutex-alone", title: "Mutex, one goroutine", note: "ns per Lock and Unlock",
		cells: []cell{mutexAloneCell(result.Time, peers)},
	}
	return []tableSpec{alone, grid, mutexWaits(goroutines, whole), mutexOversubscribed()}
}

func mutexAloneCell(m result.Measure, peers []string) cell {
	var target *result.Target
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		target = result.AtMost(0.60)
		if m.Inverted() {
			target = result.AtLeast(1 / 0.60)
		}
	}
	return cell{
		name: "MutexUncontended", label: "Mutex, uncontended", peers: peers,
		job:  func(s workload.Set) harness.Job { return s.MutexAlone() },
		rows: []rowSpec{{measure: m, target: target}},
	}
}

func mutexCell(family string, g int, w workPair, m result.Measure, target *result.Target) cell {
	params := fmt.Sprintf("g=%d/in=%d/out=%d", g, w.in, w.out)
	return cell{
		name: family + "/" + params, label: params, params: map[string]int{"g": g, "in": w.in, "out": w.out},
		job:  func(s workload.Set) harness.Job { return s.Mutex(g, w.in, w.out) },
		rows: []rowSpec{{measure: m, target: target}},
	}
}

func mutexWaits(goroutines []int, whole bool) tableSpec {
	t := tableSpec{
		name: "mutex-waits", title: "Mutex under contention: waits",
		note:  "every Lock timed, in runs of their own; a max wait is the median over the samples of each sample's longest",
		means: map[result.Measure]*result.Target{},
	}
	if whole {
		t.means[result.WaitP999] = result.AtMost(0.5)
		t.means[result.WaitMax] = result.AtMost(0.5)
	}
	longest := result.AtMost(2)
	longest.HarmlessNS = float64(harmlessWait)
	for _, g := range goroutines {
		for _, w := range gridWork {
			c := mutexCell("MutexWait", g, w, result.WaitP999, nil)
			c.rows = append(c.rows, rowSpec{measure: result.WaitMax, target: longest})
			c.timed = true
			t.cells = append(t.cells, c)
		}
	}
	return t
}

// mutexOversubscribed has more Ps than CPUs: the system preempts a holder, and everybody waits for its next time slice.
func mutexOversubscribed() tableSpec {
	procs := 8 * runtime.NumCPU()
	t := tableSpec{
		name: "mutex-oversubscribed", title: fmt.Sprintf("Mutex, oversubscribed: %d Ps on %d CPUs", procs, runtime.NumCPU()),
		note: "throughput with GOMAXPROCS at 8 times the CPUs; the system preempts holders",
	}
	for _, g := range []int{procs, 8 * procs} {
		for _, w := range []workPair{{20, 20}, {200, 200}} {
			c := mutexCell(fmt.Sprintf("MutexOversubscribed/p=%d", procs), g, w, result.Throughput, result.AtLeast(0.95))
			c.procs = procs
			t.cells = append(t.cells, c)
		}
	}
	return t
}
