package main

import (
	"fmt"
	"runtime"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/internal/lookup"
)

// The arms of the futex commands.
const (
	armPrivate      = "private"
	armImmutable    = "immutable"
	armGlobal       = "global"
	armKernel       = "kernel"
	armKernelShared = "kernel-shared"
	armKernelCall   = "kernel-call" // as a Go program has to call what may block
)

// hashSlots are the sizes of the sweep, hashBase is the one that the others are compared with.
var hashSlots = []int{2, 8, 32, 128, 512, 2048, 8192, 32768, 131072}

const hashBase = 32

type hashCmd struct {
	G     int `short:"g" name:"goroutines" placeholder:"N" help:"Goroutines. Default: one for each P."`
	Words int `default:"1024" placeholder:"N" help:"Words of each goroutine."`
}

func (c *hashCmd) Help() string {
	return `perf bench futex hash for a parking.Table: goroutines wait on many words for a value that the words do not have, so every
wait is looked up, locked, compared and refused. First with more and more slots, then by each of the ways in which Linux
has guarded the look-up against a resize, last beside the kernel's own futex, called without telling Go's scheduler.

Example: go run ./bench hash -filter slots
Example: go run ./bench hash -quick -check

A speed of 1.50x at 8192 slots means half as many refusals again as with 32. A speed of 0.90x of a design means that it is
slower than the shipped one. "private" at 10x does ten times as many operations as the kernel; kernel-call is the kernel
called as a Go program has to call what may block, kernel-shared its futex between processes.`
}

func (c *hashCmd) Run(b *bench) error {
	if c.G < 0 || c.G > 10_000 {
		return usagef("-g %d: want 1 to 10000 goroutines", c.G)
	}
	if c.Words < futex.Batch || c.Words > 1<<20 || c.Words%futex.Batch != 0 {
		return usagef("-words %d: want a multiple of %d, up to %d", c.Words, futex.Batch, 1<<20)
	}
	return b.run("hash", func(procs int) []tableSpec { return hashTables(c.G, c.Words, procs) })
}

// hashTables makes the tables; no goroutines: one for each P.
func hashTables(g, words, procs int) []tableSpec {
	if g == 0 {
		g = procs
	}
	if g == 0 {
		g = runtime.GOMAXPROCS(0)
	}
	tables := []tableSpec{hashSweep(g, words), hashLadder(g, words)}
	if futex.Missing() == nil {
		tables = append(tables, hashKernel(g, words))
	}
	return withAllProcs(tables, procs)
}

func hashSweep(g, words int) tableSpec {
	base := fmt.Sprintf("%d slots", hashBase)
	t := tableSpec{
		name: "hash-slots", title: "Refused waits by number of slots",
		note: fmt.Sprintf("ns per wait of %d goroutines with %d words each together; speed against %d slots", g, words, hashBase),
	}
	for _, n := range hashSlots {
		if n == hashBase {
			continue
		}
		var target *result.Target
		if n == 8192 && g > 1 {
			target = result.AtLeast(1.2)
		}
		t.cells = append(t.cells, cell{
			name: fmt.Sprintf("HashSlots/g=%d/slots=%d", g, n), label: fmt.Sprintf("%d slots", n), params: map[string]int{"g": g, "slots": n},
			of: armPrivate, base: base, peers: []string{armImmutable},
			jobs: map[string]func() harness.Job{
				base:         hashJob(futex.Table{Slots: hashBase}, g, words),
				armPrivate:   hashJob(futex.Table{Slots: uint64(n)}, g, words),
				armImmutable: hashJob(futex.Table{Slots: uint64(n), Immutable: true}, g, words),
			},
			rows: []rowSpec{{measure: result.Speed, target: target}},
		})
	}
	return t
}

// ladderSlots keeps the buckets apart and in the cache.
const ladderSlots = 4096

// hashLadder has a cell for each look-up design that is not shipped. An immutable table needs no guard: nothing that
// could be shipped for mutable ones.
func hashLadder(g, words int) tableSpec {
	t := tableSpec{
		name: "hash-designs", title: "Refused waits by design of the look-up",
		note: fmt.Sprintf("ns per wait with %d slots; speed of each design against the shipped one, {bucket, hash} passed on as a pair", ladderSlots),
	}
	shipped := lookup.Pair.String()
	add := func(g int, name string, c futex.Table, target *result.Target) {
		t.cells = append(t.cells, cell{
			name: fmt.Sprintf("HashDesign/g=%d/design=%s", g, dashed(name)), label: fmt.Sprintf("%s, %d goroutines", name, g), params: map[string]int{"g": g},
			of: name, base: shipped,
			jobs: map[string]func() harness.Job{
				shipped: hashJob(futex.Table{Slots: ladderSlots}, g, words),
				name:    hashJob(c, g, words),
			},
			rows: []rowSpec{{measure: result.Speed, target: target}},
		})
	}
	for _, n := range oneAnd(g) {
		for _, d := range lookup.Designs() {
			if d != lookup.Pair {
				add(n, d.String(), futex.Table{Slots: ladderSlots, Design: d}, result.AtMost(1))
			}
		}
		add(n, armImmutable, futex.Table{Slots: ladderSlots, Immutable: true}, nil)
	}
	return t
}

func hashKernel(g, words int) tableSpec {
	const slots = 131072
	t := tableSpec{
		name: "hash-kernel", title: "Refused waits beside the kernel's futex",
		note: fmt.Sprintf("ns per wait; speed against the kernel's private futex; private and immutable have %d slots", slots),
	}
	for _, n := range oneAnd(g) {
		t.cells = append(t.cells, cell{
			name: fmt.Sprintf("HashKernel/g=%d", n), label: fmt.Sprintf("%d goroutines", n), params: map[string]int{"g": n},
			of: armPrivate, base: armKernel, peers: []string{armImmutable, armGlobal, armKernelShared, armKernelCall},
			jobs: map[string]func() harness.Job{
				armPrivate:      hashJob(futex.Table{Slots: slots}, n, words),
				armImmutable:    hashJob(futex.Table{Slots: slots, Immutable: true}, n, words),
				armGlobal:       hashJob(futex.Table{}, n, words),
				armKernel:       hashJob(futex.Kernel{}, n, words),
				armKernelShared: hashJob(futex.Kernel{Shared: true}, n, words),
				armKernelCall:   hashJob(futex.Kernel{Blocking: true}, n, words),
			},
			rows: []rowSpec{{measure: result.Speed, target: result.AtLeast(10)}},
		})
	}
	return t
}

// oneAnd returns 1 and g, or 1.
func oneAnd(g int) []int {
	if g == 1 {
		return []int{1}
	}
	return []int{1, g}
}

// A futexMaker makes the futex of one sample.
type futexMaker interface{ New() (futex.Futex, error) }

// mustMake makes a futex that the command line cannot have made impossible.
func mustMake(f futexMaker) futex.Futex {
	made, err := f.New()
	if err != nil {
		panic(err)
	}
	return made
}

func hashJob(f futexMaker, g, words int) func() harness.Job {
	return func() harness.Job { return futex.Hash(mustMake(f), g, words) }
}
