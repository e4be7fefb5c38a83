//go:build sim

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
	s := &treeSearch{e: e, limit: x.preemptions, leaf: -1}
	if x.preemptions < 0 {
		s.bound = Unbounded
	}
	if e.opt.Reduce != NoReduction {
		s.visited = map[uint64]int8{}
	}
	e.quiet = e.opt.Reduce == ByHistory && e.mode != AcqRel
	e.written = map[kind]bool{}
	e.bound = s.bound
	return s
}

// treeSearch walks the tree of choices by running the program again from the start for each leaf.
//
// With a reduction it remembers every point it came to, with the number of preemptions that were left, and prunes a schedule
// that comes to the same point with no more of them. That is sound together with the bound, unlike sleep sets: the same
// point means the same future, the future within the smaller allowance is part of that within the larger one, and the first
// visit explores it whole before the search ends.
//
// The tree is walked from the root outwards then: what is remembered cuts long paths, and each schedule repeats the path
// to its branch. Without a reduction it is walked depth first, which needs no memory.
type treeSearch struct {
	e       *engine
	limit   int
	bound   int
	visited map[uint64]int8

	nodes []branch
	head  int    // outwards: the first branch that has alternatives left
	begun bool   // within this bound
	path  []int8 // what to choose at the branches of the next schedule, the last of them for the first time
	depth int    // branches passed in the present schedule
	leaf  int    // the branch passed last, an index into nodes; -1: none
	marks []uint32
}

// branch is a point where a schedule chose between n alternatives; those below next have been tried.
type branch struct {
	parent  int32
	mark    uint32 // of the point, to notice a program that is not deterministic
	via     int8   // the alternative of the parent that leads here
	next, n int8
}

func (s *treeSearch) another() bool {
	s.depth, s.leaf = 0, -1
	if s.e.refuted {
		s.forget()
	}
	if !s.begun {
		s.begun = true
		s.path = s.path[:0]
		return true
	}
	if b := s.frontier(); b >= 0 {
		s.aim(b)
		return true
	}
	if s.bound == s.limit {
		return false
	}
	s.bound++
	s.e.bound = s.bound
	s.nodes, s.head, s.path = s.nodes[:0], 0, s.path[:0]
	return true
}

// forget begins the search anew, after a word that counted as still was written.
func (s *treeSearch) forget() {
	s.e.refuted = false
	s.begun = false
	clear(s.visited)
	s.nodes, s.head = s.nodes[:0], 0
	s.bound = min(s.limit, 0)
	s.e.bound = s.bound
}

// frontier returns a branch with an alternative that has not been tried, -1 if there is none.
func (s *treeSearch) frontier() int {
	if s.visited == nil {
		for n := len(s.nodes); n > 0; n-- {
			if b := &s.nodes[n-1]; b.next < b.n {
				return n - 1
			}
			s.nodes = s.nodes[:n-1]
		}
		return -1
	}
	for ; s.head < len(s.nodes); s.head++ {
		if b := &s.nodes[s.head]; b.next < b.n {
			return s.head
		}
	}
	return -1
}

// aim sets the path to the next alternative of a branch.
func (s *treeSearch) aim(i int) {
	s.path, s.marks = s.path[:0], s.marks[:0]
	choice := s.nodes[i].next
	s.nodes[i].next++
	for at := int32(i); at >= 0; at = s.nodes[at].parent {
		s.path, s.marks = append(s.path, choice), append(s.marks, s.nodes[at].mark)
		choice = s.nodes[at].via
	}
	slices.Reverse(s.path)
	slices.Reverse(s.marks)
	s.leaf = i
}

func (s *treeSearch) complete() bool { return true }
func (s *treeSearch) states() int    { return len(s.visited) }
func (s *treeSearch) seed() uint64   { return 0 }

func (s *treeSearch) pick(e *engine) int {
	n := len(e.opts)
	if n == 1 {
		return 0
	}
	if s.depth < len(s.path) {
		return s.again(n)
	}
	if s.visited != nil && s.seen(e) {
		return -1
	}
	return s.grow(n)
}

func (s *treeSearch) value(_ *engine, n int) int {
	if s.depth < len(s.path) {
		return s.again(n)
	}
	return s.grow(n)
}

// mark is a fingerprint of the present point.
func (s *treeSearch) mark(n int) uint32 {
	h := uint64(s.e.steps)<<8 | uint64(n)
	if t := s.e.last; t != nil {
		h ^= t.hash
	}
	return uint32(h ^ h>>32)
}

func (s *treeSearch) again(n int) int {
	if s.marks[s.depth] != s.mark(n) {
		s.e.failWith(KindUnstable, fmt.Sprintf("the same choices led to another point after %d steps", s.e.steps))
		return 0
	}
	s.depth++
	return int(s.path[s.depth-1])
}

func (s *treeSearch) grow(n int) int {
	b := branch{parent: int32(s.leaf), mark: s.mark(n), next: 1, n: int8(n)}
	if s.leaf >= 0 && s.depth == len(s.path) && len(s.path) > 0 {
		b.via = s.path[len(s.path)-1]
	}
	s.leaf = len(s.nodes)
	s.nodes = append(s.nodes, b)
	s.depth++
	return 0
}

// seen enters the present point and reports whether it need not be continued.
func (s *treeSearch) seen(e *engine) bool {
	left := int8(0)
	if s.bound >= 0 {
		left = int8(min(s.bound-e.used, 127))
	}
	k := e.key()
	if before, ok := s.visited[k]; ok && before >= left {
		return true
	}
	s.visited[k] = left
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
	e.bound, e.quiet = Unbounded, false
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
	e.bound, e.quiet = Unbounded, false
	return &pctSearch{source: newSource(p.from), depth: p.depth, changes: make([]int, p.depth-1)}
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
		s.changes[i] = 1 + s.below(max(s.longest, 1))
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
