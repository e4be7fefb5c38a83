//go:build sim

package sim

import (
	"fmt"
	"math/rand/v2"
)

// Strategy chooses the schedules: Exhaustive, PCT, Uniform or Replay.
type Strategy interface {
	String() string
	begin(e *engine) search
}

// Unbounded is the preemption bound of an exhaustive search without one.
const Unbounded = -1

// chooser decides within a schedule.
type chooser interface {
	pick(e *engine) int         // an index into e.opts, which is not empty; < 0: prune
	value(e *engine, n int) int // a number below n
}

// search is a strategy at work on one program.
type search interface {
	chooser
	another() bool  // prepares the next schedule, if there is one
	complete() bool // after another returned false: all there is was covered
	states() int
	seed() uint64 // of the present schedule, 0 if it has none
}

// --- exhaustive

type exhaustive struct{ preemptions int }

// Exhaustive visits every schedule with at most so many preemptions: switches away from a thread that could have gone on
// and did not yield. Draining a buffer, a timer and an interrupt are choices too, but no preemptions. The bound is raised
// step by step from 0, so that a failure has as few preemptions as possible; Unbounded sets no bound.
func Exhaustive(preemptions int) Strategy { return exhaustive{preemptions} }

func (x exhaustive) String() string {
	if x.preemptions < 0 {
		return "exhaustive"
	}
	return fmt.Sprintf("exhaustive to %d preemptions", x.preemptions)
}

func (x exhaustive) begin(e *engine) search {
	d := &depthFirst{limit: x.preemptions}
	if x.preemptions < 0 {
		d.bound = Unbounded
	}
	if e.opt.Reduce != NoReduction {
		d.visited = map[uint64]int8{}
	}
	e.bound = d.bound
	d.e = e
	return d
}

// depthFirst walks the tree of choices by running the program again from the start for each leaf.
//
// With a reduction it remembers every point it came to, with the number of preemptions that were left, and prunes a schedule
// that comes to the same point with no more of them. That is sound together with the bound, unlike sleep sets: the same
// point means the same future, the future within the smaller allowance is part of that within the larger one, and the first
// visit explores it whole before the search ends.
type depthFirst struct {
	e       *engine
	limit   int
	bound   int
	path    []branch
	depth   int
	started bool
	visited map[uint64]int8
}

// branch is a choice between n alternatives of which the present schedule takes number i.
type branch struct {
	i, n uint8
	mark uint32 // of the point, to notice a program that is not deterministic
}

func (d *depthFirst) another() bool {
	if !d.started {
		d.started = true
		return true
	}
	d.depth = 0
	for len(d.path) > 0 {
		b := &d.path[len(d.path)-1]
		if b.i++; b.i < b.n {
			return true
		}
		d.path = d.path[:len(d.path)-1]
	}
	if d.bound == d.limit {
		return false
	}
	d.bound++
	d.e.bound = d.bound
	return true
}

func (d *depthFirst) complete() bool { return true }
func (d *depthFirst) states() int    { return len(d.visited) }
func (d *depthFirst) seed() uint64   { return 0 }

func (d *depthFirst) pick(e *engine) int {
	n := len(e.opts)
	if n == 1 {
		return 0
	}
	if d.depth < len(d.path) {
		return d.again(n)
	}
	if d.visited != nil && d.seen(e) {
		return -1
	}
	return d.grow(n)
}

func (d *depthFirst) value(_ *engine, n int) int {
	if d.depth < len(d.path) {
		return d.again(n)
	}
	return d.grow(n)
}

// mark is a fingerprint of the present point.
func (d *depthFirst) mark(n int) uint32 {
	h := uint64(d.e.steps)<<8 | uint64(n)
	if t := d.e.last; t != nil {
		h ^= t.hash
	}
	return uint32(h ^ h>>32)
}

func (d *depthFirst) again(n int) int {
	b := &d.path[d.depth]
	d.depth++
	if int(b.n) != n || b.mark != d.mark(n) {
		d.e.failWith(KindUnstable, fmt.Sprintf("the same choices led to another point after %d steps", d.e.steps))
		return 0
	}
	return int(b.i)
}

func (d *depthFirst) grow(n int) int {
	d.path = append(d.path, branch{0, uint8(n), d.mark(n)})
	d.depth++
	return 0
}

// seen enters the present point and reports whether it need not be continued.
func (d *depthFirst) seen(e *engine) bool {
	left := int8(0)
	if d.bound >= 0 {
		left = int8(min(d.bound-e.used, 127))
	}
	k := e.key()
	if before, ok := d.visited[k]; ok && before >= left {
		return true
	}
	d.visited[k] = left
	return false
}

// --- random

// source is what the random strategies share: one seed per schedule.
type source struct {
	first, next, now uint64
	rng              *rand.PCG
}

func newSource(seed uint64) source { return source{first: seed, next: seed, rng: rand.NewPCG(0, 0)} }

func (s *source) another() bool {
	s.now = s.next
	s.next++
	s.rng.Seed(s.now, 0x51a)
	return true
}

func (s *source) complete() bool { return false }
func (s *source) states() int    { return 0 }
func (s *source) seed() uint64   { return s.now }

func (s *source) below(n int) int { return int(s.rng.Uint64() % uint64(n)) }

func (s *source) value(_ *engine, n int) int { return s.below(n) }

type uniform struct{ from uint64 }

// Uniform takes every choice at random, each alternative with the same probability. Schedule number i has seed+i.
func Uniform(seed uint64) Strategy { return uniform{seed} }

func (u uniform) String() string { return fmt.Sprintf("uniform from seed %d", u.from) }

func (u uniform) begin(e *engine) search {
	e.bound = Unbounded
	return &uniformSearch{newSource(u.from)}
}

type uniformSearch struct{ source }

func (s *uniformSearch) pick(e *engine) int {
	if len(e.opts) == 1 {
		return 0
	}
	return s.below(len(e.opts))
}

type pct struct {
	depth int
	from  uint64
}

// PCT is probabilistic concurrency testing (Burckhardt et al. 2010): threads, store buffers and timers have random
// priorities, the highest that can act does, and at depth-1 random steps the one that is about to act falls below all
// others. It finds a bug that takes depth ordering constraints with probability 1/(n k^(depth-1)) per schedule of k steps
// by n threads. Schedule number i has seed+i.
func PCT(depth int, seed uint64) Strategy { return pct{max(depth, 1), seed} }

func (p pct) String() string { return fmt.Sprintf("PCT depth %d from seed %d", p.depth, p.from) }

func (p pct) begin(e *engine) search {
	e.bound = Unbounded
	return &pctSearch{source: newSource(p.from), depth: p.depth, changes: make([]int, p.depth-1), longest: 40}
}

type pctSearch struct {
	source
	depth   int
	longest int // steps seen so far, from which change points are drawn
	changes []int
	low     uint64 // the next priority below all others
	prio    [int(optValue)][maxThreads]uint64
	e       *engine
}

func (s *pctSearch) another() bool {
	if s.e != nil {
		s.longest = max(s.longest, s.e.steps)
	}
	s.source.another()
	s.prio = [int(optValue)][maxThreads]uint64{}
	s.low = 1 << 20
	for i := range s.changes {
		s.changes[i] = 1 + s.below(s.longest)
	}
	return true
}

func (s *pctSearch) priority(o option) *uint64 {
	p := &s.prio[o.kind][o.id%maxThreads]
	if *p == 0 {
		*p = s.rng.Uint64() | 1<<40
	}
	return p
}

func (s *pctSearch) pick(e *engine) int {
	s.e = e
	i := s.highest(e)
	for _, c := range s.changes {
		if c == e.steps {
			s.lower(s.priority(e.opts[i]))
			i = s.highest(e)
		}
	}
	return i
}

func (s *pctSearch) lower(p *uint64) {
	s.low--
	*p = s.low
}

func (s *pctSearch) highest(e *engine) int {
	if t := e.last; t != nil && t.yielded { // who gives way falls behind those it gives way to
		s.lower(s.priority(option{kind: optThread, id: uint8(t.id)}))
	}
	best, top := 0, uint64(0)
	for i, o := range e.opts {
		if p := *s.priority(o); p > top {
			best, top = i, p
		}
	}
	return best
}
