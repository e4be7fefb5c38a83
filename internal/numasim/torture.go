//go:build sim

package numasim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/locks"
	"github.com/hqsync/hqsync/internal/sim"
)

// A Run says what is tortured, and how long.
type Run struct {
	Machine Machine
	Lock    string // a kind of package locks, or Ours
	Threads int
	Ops     int    // acquisitions counted
	Seed    uint64 // of placement and luck
}

// An Outcome is what came of it.
type Outcome struct {
	PerOp   float64 // simulated ns per acquisition
	Local   float64 // share of acquisitions that were handed over by another thread of the same domain
	Remote  float64 // by one of another domain; the rest: the same thread again
	TopHalf float64 // fairness factor: share of the half of the threads that got most
	MaxMin  float64 // fairness factor by the extremes: max / (max + min)
}

// The loop of the kernel's locktorture: three draws and three divisions within the section, which HandOver stands for, two
// lines of data, no delay outside the lock but the loop itself.
const (
	loopTime   = 10 * ns
	shortDelay = 2 * time.Microsecond
	shortOdds  = 400 // in so many acquisitions per thread
	// A burst begins with the lock held until everybody waits for it, as after one of locktorture's long holds.
	gathering = 20 * time.Microsecond
	// Once in 200,000 acquisitions per thread locktorture holds the lock for 100 ms. That disturbs nothing but the sum, so
	// it is added to it: 500 ns per acquisition, divided by the number of threads.
	longHolds = 500 * ns
)

// tortured is the memory that the section touches. Four threads' counters share a line, as in the kernel.
type tortured struct {
	writeHeld, readHeld sim.Uint32
	lastRelease         sim.Uint64
	_                   [48]byte
}

type tortureStats struct{ acquired, failed sim.Uint64 }

// Torture runs the loop: short bursts, with pauses in which the lock comes to rest, as locktorture makes every few ticks of
// its clock, and a long burst that is measured. All threads begin a burst together.
func (r Run) Torture() (Outcome, error) {
	t := torture{Run: r, cpus: place(r.Machine.CPUs, r.Machine.Even, r.Threads, r.Seed), luck: rand.New(rand.NewPCG(r.Seed, 1))}
	var err error
	if t.lock, err = r.newLock(t.cpus); err != nil {
		return Outcome{}, err
	}
	t.data, t.stats = new(tortured), make([]tortureStats, (r.Threads+3)/4*4)
	t.setup = hq.ResetForSim
	for range warmUps {
		if _, err := t.burst(0, 4*r.Threads+warmUp); err != nil {
			return Outcome{}, err
		}
	}
	return t.burst(2*r.Threads, r.Ops)
}

// So many bursts of so many acquisitions, and a few per thread, are enough for a lock to find out how contended it is. One
// that decides when its queue drains has a chance after each.
const (
	warmUps = 5
	warmUp  = 400
)

// torture is a Run under way.
type torture struct {
	Run
	cpus  []int // of each thread
	lock  locks.Lock
	data  *tortured
	stats []tortureStats
	luck  *rand.Rand
	count tally
	setup func() // of the first burst
}

// tally counts what happens in a burst.
type tally struct {
	skip, ops     int // acquisitions before those that count, and those
	total         int
	begin, end    time.Duration
	last          int // owner
	local, remote int
	perThread     []int
}

func (t *torture) burst(skip, ops int) (Outcome, error) {
	t.count = tally{skip: skip, ops: ops, last: -1, perThread: make([]int, t.Threads)}
	m := t.Machine
	program := sim.Costed{
		Name: fmt.Sprintf("%s, %s, %d threads", m.Name, t.Lock, t.Threads), Machine: m.Machine, CPU: t.cpus, Seed: t.Seed + 1,
		Domains: make([]int, len(m.CPUs)), Nodes: make([]int, len(m.CPUs)),
	}
	for cpu, p := range m.CPUs {
		program.Domains[cpu], program.Nodes[cpu] = m.Domain(p), p.Node
	}
	for i := range t.Threads {
		program.Threads = append(program.Threads, func() { t.loop(i) })
		program.Starts = append(program.Starts, time.Duration(t.luck.IntN(100)))
	}
	program.Setup, t.setup = t.setup, nil
	if _, err := sim.RunCosted(program); err != nil {
		return Outcome{}, err
	}
	return t.count.outcome(t.Threads), nil
}

func (t *torture) loop(i int) {
	for t.count.total < t.count.skip+t.count.ops {
		t.lock.Lock(i)
		mine := &t.stats[i].acquired
		sim.Prefetch64(mine) // does not depend on what follows
		if sim.LoadPlain32(&t.data.writeHeld) != 0 {
			sim.Failf("two owners of %s", t.Lock)
		}
		sim.StorePlain32(&t.data.writeHeld, 1)
		sim.LoadPlain32(&t.data.readHeld)
		sim.StorePlain64(mine, sim.LoadPlain64(mine)+1)
		sim.Work(t.Machine.HandOver)
		if t.count.total == 0 {
			sim.Work(gathering)
		}
		if t.luck.IntN(t.Threads*shortOdds) == 0 {
			sim.Work(shortDelay)
		}
		t.counted(i)
		sim.StorePlain32(&t.data.writeHeld, 0)
		sim.StorePlain64(&t.data.lastRelease, 1)
		t.lock.Unlock(i)
		sim.Work(loopTime)
	}
}

// counted books an acquisition by thread i.
func (t *torture) counted(i int) {
	c := &t.count
	before := c.last
	c.last = i
	switch c.total++; {
	case c.total <= c.skip:
		c.begin = sim.Elapsed()
		return
	case c.total > c.skip+c.ops:
		return
	}
	c.end = sim.Elapsed()
	c.perThread[i]++
	if before < 0 || before == i {
		return
	}
	if t.domain(i) == t.domain(before) {
		c.local++
	} else {
		c.remote++
	}
}

func (t *torture) domain(i int) int { return t.Machine.Domain(t.Machine.CPUs[t.cpus[i]]) }

func (c *tally) outcome(threads int) Outcome {
	o := Outcome{
		PerOp: (float64(c.end-c.begin)/float64(c.ops) + float64(longHolds)/float64(threads)) / float64(ns),
		Local: float64(c.local) / float64(c.ops), Remote: float64(c.remote) / float64(c.ops),
	}
	o.TopHalf, o.MaxMin = fairness(c.perThread)
	return o
}

func (r Run) newLock(cpus []int) (locks.Lock, error) {
	if r.Lock == Ours {
		return newOurs(), nil
	}
	places := make([]locks.Place, len(cpus))
	for i, cpu := range cpus {
		p := r.Machine.CPUs[cpu]
		places[i] = locks.Place{Domain: r.Machine.Domain(p), Socket: p.Socket}
	}
	return locks.New(r.Lock, places)
}

// place puts threads on CPUs as a scheduler does that balances cores, and if even sockets, and knows nothing of who talks to
// whom: at random otherwise.
func place(cpus []sim.CPUPlace, even bool, threads int, seed uint64) []int {
	luck := rand.New(rand.NewPCG(seed, 2))
	order := luck.Perm(len(cpus))
	onCore, onSocket := map[int]int{}, map[int]int{}
	core, socket := make([]int, len(cpus)), make([]int, len(cpus)) // how many come before a CPU on its core, its socket
	for _, cpu := range order {
		core[cpu] = onCore[cpus[cpu].Core]
		onCore[cpus[cpu].Core]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return core[a] - core[b] })
	if !even {
		return order[:threads]
	}
	for _, cpu := range order {
		socket[cpu] = onSocket[cpus[cpu].Socket]
		onSocket[cpus[cpu].Socket]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return socket[a] - socket[b] })
	return order[:threads]
}

// fairness returns both factors that the published figures may be.
func fairness(counts []int) (topHalf, maxMin float64) {
	sorted := slices.Clone(counts)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	top, sum := 0, 0
	for i, n := range sorted {
		sum += 2 * n
		switch last := 2*i + 1; {
		case last < len(sorted):
			top += 2 * n
		case last == len(sorted): // the middle one of an odd number: half of it
			top += n
		}
	}
	most, least := sorted[0], sorted[len(sorted)-1]
	return float64(top) / float64(max(sum, 1)), float64(most) / float64(max(most+least, 1))
}

// The counters of four threads fill a line.
var _ [64]byte = [4 * unsafe.Sizeof(tortureStats{})]byte{}
