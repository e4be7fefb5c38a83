package asm

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Litmus tests: two threads run two short bodies on the same words at the same
// time, many times over, and the outcomes that an ordering forbids are counted.
// Zero proves nothing by itself. So each test also runs a control: the same
// bodies without the ordering under test, whose forbidden outcomes must show.
// If they do not show here, the test is skipped and says so.

// line is a word with a cache line of its own.
type line struct {
	word uint32
	_    [60]byte
}

// cell is the memory of one round, all zero at its start.
type cell struct {
	x, y    line
	clutter [24]line // stores to these delay the stores behind them
	r0, r1  uint32   // what left and right loaded
	_       [56]byte
	split   splitPair
}

// splitPair holds two adjacent words on two cache lines, the cell being aligned
// to one.
type splitPair struct {
	_    [60]byte
	flag uint32
	data uint32
	_    [56]byte
}

// litmus is a pair of bodies.
type litmus struct {
	left, right func(c *cell)
	before      func(c *cell) // run by the right thread before the round
	forbidden   func(c *cell) bool
}

// Where the test knows how, yieldCPU offers the CPU to other threads, and
// bindTo puts the locked thread on one of two CPUs until the undo is called: on
// a busy machine the scheduler likes to let both sides take turns on one.
var (
	yieldCPU = runtime.Gosched
	bindTo   = func(side int) (undo func()) { return func() {} }
)

// arrivals is a barrier of two; each side counts in a line of its own.
type arrivals [2]line

func (a *arrivals) meet(side int, n uint32) {
	atomic.StoreUint32(&a[side].word, n)
	for spins := 0; int32(atomic.LoadUint32(&a[1-side].word)-n) < 0; spins++ {
		if spins%4096 == 4095 {
			yieldCPU() // the other side has none, perhaps
		}
	}
}

// run returns the number of rounds and how many had the forbidden outcome.
func (l litmus) run(span time.Duration) (rounds, hits int) {
	const batch = 64
	cells := alignedCells(batch)
	var met arrivals
	var stop atomic.Bool

	side := func(side int, body, before func(c *cell), betweenBatches func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer bindTo(side)()
		random := rand.New(rand.NewPCG(uint64(side), 1))
		n := uint32(0)
		meet := func() { n++; met.meet(side, n) }
		for !stop.Load() {
			for i := range cells {
				c := &cells[i]
				if before != nil {
					before(c)
				}
				skew := random.Uint32() % 512
				meet()
				for range skew {
				}
				body(c)
			}
			meet() // all loads are done
			if betweenBatches != nil {
				betweenBatches()
			}
			meet() // the cells are zero again, and stop is decided
		}
	}

	end := time.Now().Add(span)
	done := make(chan struct{})
	go func() {
		defer close(done)
		side(1, l.right, l.before, nil)
	}()
	side(0, l.left, nil, func() {
		for i := range cells {
			if l.forbidden(&cells[i]) {
				hits++
			}
		}
		rounds += batch
		clear(cells)
		stop.Store(time.Now().After(end))
	})
	<-done
	return rounds, hits
}

// litmusSpan is how long one variant runs.
func litmusSpan() time.Duration {
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return 500 * time.Millisecond
}

func needTwoCPUs(t *testing.T) {
	if runtime.NumCPU() < 2 || runtime.GOMAXPROCS(0) < 2 {
		t.Skipf("two threads at the same time need two CPUs; there are %d, GOMAXPROCS is %d",
			runtime.NumCPU(), runtime.GOMAXPROCS(0))
	}
}

// forbid runs the control until the outcome shows, then l until the control's
// rate would have shown it a hundred times; each at most ten times the span.
func forbid(t *testing.T, l, control litmus) {
	t.Helper()
	needTwoCPUs(t)
	const tries, wanted = 10, 100
	shown, controls := 0, 0
	for try := 0; try < tries && shown == 0; try++ {
		rounds, hits := control.run(litmusSpan())
		controls += rounds
		shown += hits
	}
	seen, total := 0, 0
	for try := 0; try < tries && (try == 0 || total*shown < wanted*controls); try++ {
		rounds, hits := l.run(litmusSpan())
		total += rounds
		seen += hits
	}
	t.Logf("forbidden outcome: %d of %d; without the ordering %d of %d", seen, total, shown, controls)
	if seen != 0 {
		t.Fatalf("the forbidden outcome occurred %d times in %d rounds", seen, total)
	}
	if shown == 0 {
		t.Skipf("the forbidden outcome does not show here without the ordering either, in %d rounds", controls)
	}
}

// Message passing: who sees the flag sees the data.

func messagePassing(write func(data, flag *uint32), read func(data *uint32) uint32) litmus {
	return litmus{
		left:      func(c *cell) { write(&c.x.word, &c.y.word) },
		right:     func(c *cell) { receive(c, &c.x.word, &c.y.word, read) },
		forbidden: func(c *cell) bool { return c.r0 == 1 && c.r1 == 0 },
	}
}

// receive reads the data only after it saw the flag: then a plain write and a
// plain read are no data race.
func receive(c *cell, data, flag *uint32, read func(data *uint32) uint32) {
	for range 20 {
		if LoadAcquire32(flag) == 1 {
			c.r0, c.r1 = 1, read(data)
			return
		}
	}
}

func readPlain(data *uint32) uint32 { return *data }

func TestLitmusMP_ReleaseAcquire(t *testing.T) {
	right := func(data, flag *uint32) { *data = 1; StoreRelease32(flag, 1) }
	wrong := func(data, flag *uint32) { atomic.StoreUint32(flag, 1); atomic.StoreUint32(data, 1) }
	forbid(t, messagePassing(right, readPlain), messagePassing(wrong, atomic.LoadUint32))
}

// Load buffering: each side loads the word that the other stores to afterwards.
// Not both can see the other's store.

func loadBuffering(body func(load, store *uint32) uint32) litmus {
	return litmus{
		left:      func(c *cell) { c.r0 = body(&c.x.word, &c.y.word) },
		right:     func(c *cell) { c.r1 = body(&c.y.word, &c.x.word) },
		forbidden: func(c *cell) bool { return c.r0 == 1 && c.r1 == 1 },
	}
}

func TestLitmusLB_AcquireRelease(t *testing.T) {
	right := func(load, store *uint32) uint32 {
		seen := LoadAcquire32(load)
		StoreRelease32(store, 1)
		return seen
	}
	wrong := func(load, store *uint32) uint32 {
		atomic.StoreUint32(store, 1)
		return atomic.LoadUint32(load)
	}
	forbid(t, loadBuffering(right), loadBuffering(wrong))
}
