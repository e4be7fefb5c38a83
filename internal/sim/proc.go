//go:build sim

package sim

import (
	"fmt"
	"math/rand/v2"
)

// Running reports whether the caller is a simulated thread. A seam whose real counterpart does more than the fall-back of
// this package (park with a wait reason, pin the real P) asks it first.
func Running() bool { return current() != nil }

// Exploring reports whether the caller works for an exploration: as a thread of a run, or as Setup, Check or Final.
func Exploring() bool { return engineHere() != nil }

// Pin keeps the thread on its P and returns the P's number, from 0. Pins nest. Outside a run it returns 0 and pins nothing.
//
// At most Options.Procs threads can be pinned at once; with Options.Migrate the thread may find itself on any P that no
// other thread is pinned to. Leaving a P drains the store buffer: the scheduler switches by locked instructions.
func Pin() int {
	t := current()
	if t == nil {
		return 0
	}
	if t.cost != nil {
		t.pins++
		return t.p
	}
	t.pinPoint(opPin)
	if t.pins == 0 {
		t.place()
		t.e.pinned++
	}
	t.pins++
	t.e.note(t, nil, value{}, value{}, fmt.Sprintf("to P%d", t.p))
	return t.p
}

// Unpin undoes one Pin.
func Unpin() {
	t := current()
	if t == nil {
		return
	}
	if t.cost != nil {
		t.pins--
		return
	}
	t.pinPoint(opUnpin)
	if t.pins == 0 {
		t.fail(KindMisuse, t.name+" unpins without being pinned")
	}
	if t.pins--; t.pins == 0 {
		t.e.pinned--
	}
	t.e.note(t, nil, value{}, value{}, "")
}

// pinPoint is a scheduling point only if it makes a difference to anybody: if threads can lack Ps, or change them.
func (t *thread) pinPoint(op opcode) {
	if e := t.e; e.opt.Migrate || e.live > len(e.procs) || e.over {
		t.point(op, nil)
	} else {
		t.op, t.on = op, nil
		t.advance(op)
	}
}

// place decides which P the thread is on, for a thread that is not pinned.
func (t *thread) place() {
	e := t.e
	var free []int
	if e.opt.Migrate || e.pinned > 0 {
		free = e.freeProcs(t)
	} else {
		free = e.one[:1]
		free[0] = t.p
	}
	p := free[0]
	if e.opt.Migrate {
		p = free[e.choose(len(free), 1)]
	}
	if p != t.p {
		t.drainAll()
		t.p = p
	}
	if o := e.procs[p]; o != t {
		if o != nil && o.p == p {
			o.drainAll()
		}
		e.procs[p] = t
	}
	t.hash = mix(t.hash, uint64(p))
}

// freeProcs lists the Ps that nobody else is pinned to, that of the thread first.
func (e *engine) freeProcs(t *thread) []int {
	var busy [maxThreads]bool
	for _, o := range e.threads[:e.n] {
		if o != t && o.pins > 0 {
			busy[o.p] = true
		}
	}
	free := e.one[:0]
	for i := range e.procs {
		if p := (t.p + i) % len(e.procs); !busy[p] {
			free = append(free, p)
		}
	}
	return free
}

// CPU returns the number of the CPU the caller is on: in a run that of its P, outside 0.
func CPU() int {
	t := current()
	if t == nil {
		return 0
	}
	if t.cost != nil {
		return t.cost.cpu
	}
	if t.pins == 0 {
		t.point(opCPU, nil)
		t.place()
	}
	return t.p
}

// Domain returns the locality domain of CPU.
func Domain(cpu int) int {
	if e := engineHere(); e != nil && cpu < len(e.opt.Domains) {
		return e.opt.Domains[cpu]
	}
	return 0
}

// Node returns the NUMA node of a CPU.
func Node(cpu int) int {
	if e := engineHere(); e != nil && cpu < len(e.opt.Nodes) {
		return e.opt.Nodes[cpu]
	}
	return 0
}

// Procs returns the number of Ps, 0 outside a run.
func Procs() int {
	if e := engineHere(); e != nil {
		return len(e.procs)
	}
	return 0
}

// MustPinned ends the schedule as failed if the thread is not pinned.
func MustPinned(what string) {
	if t := current(); t != nil && t.pins == 0 {
		t.fail(KindMisuse, fmt.Sprintf("%s: %s needs to be pinned", t.name, what))
	}
}

// MustNotPinned ends the schedule as failed if the thread is pinned.
func MustNotPinned(what string) {
	if t := current(); t != nil {
		t.unpinnedFor(what)
	}
}

func (t *thread) unpinnedFor(what string) {
	if t.pins > 0 {
		t.fail(KindMisuse, fmt.Sprintf("%s: %s while pinned", t.name, what))
	}
}

// Rand returns pseudo-random bits: in a run the same at the same place of every schedule, depending on Options.Seed.
func Rand() uint64 {
	e := engineHere()
	if e == nil {
		return rand.Uint64()
	}
	if t := e.cur; t != nil {
		t.rand++
		return mix(mix(e.opt.Seed, uint64(t.id)+1), t.rand)
	}
	e.rand++
	return mix(e.opt.Seed, e.rand<<8)
}

// ID returns a number for an address, counted from 1 in the order in which addresses are first asked about: what to hash
// instead of the address, which is another one in every schedule. Ask in Setup for those that all schedules share. The
// object must stay alive. Outside a run it returns the address.
func ID(p uintptr) uint64 {
	e := engineHere()
	if e == nil {
		return uint64(p)
	}
	id := e.ids[p]
	if id == 0 {
		id = uint64(len(e.ids)) + 1
		e.ids[p] = id
	}
	if t := e.cur; t != nil {
		t.hash = mix(t.hash, id)
	}
	return id
}

// Choose returns a number below n, and every such number in some schedule: a decision that the code under test leaves to
// chance or to circumstances that are not modelled. Outside a run it returns 0.
func Choose(n int) int {
	t := current()
	if t == nil {
		return 0
	}
	if n < 1 || n > 100 {
		t.fail(KindMisuse, fmt.Sprintf("%s: Choose(%d), allowed are 1 to 100", t.name, n))
	}
	if t.cost != nil {
		return 0
	}
	k := t.e.choose(n, 0)
	t.hash = mix(t.hash, uint64(k))
	return k
}

// Step is an operation that does nothing: a place where the thread can be preempted, under a name for the trace.
func Step(name string) {
	if t := current(); t != nil {
		t.point(opStep, nil)
		t.e.note(t, nil, value{}, value{}, name)
	}
}

// At declares that from here on the thread's behaviour depends on the past only through pc, a number that stands for the
// place in the program, and the given local variables. Reduction ByState takes it at its word.
func At(pc int, locals ...uint64) {
	t := current()
	if t == nil || !t.e.byState {
		return
	}
	t.hash = mix(uint64(pc), 4)
	for _, v := range locals {
		t.hash = mix(t.hash, v)
	}
	t.reads.clear()
}

// Atomically runs f as one step. Nothing in f may block.
func Atomically(f func()) {
	t := current()
	if t == nil {
		f()
		return
	}
	if t.cost != nil {
		t.cost.atomically(f)
		return
	}
	t.point(opAtomic, nil)
	t.nosched++
	f()
	t.nosched--
}

// Go runs f in a new thread.
func Go(f func()) {
	t := current()
	if t == nil {
		go f()
		return
	}
	t.point(opGo, nil)
	t.drainAll()
	n := t.e.spawn(fmt.Sprintf("T%d", t.e.n), f, t.hash)
	t.e.note(t, nil, value{}, value{}, n.name)
}

// Failf ends the schedule as failed.
func Failf(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if t := current(); t != nil {
		t.fail(KindAssert, t.name+": "+msg)
	}
	panic("sim: " + msg)
}

// Assert ends the schedule as failed if the condition does not hold.
func Assert(ok bool, msg string) {
	if !ok {
		Failf("%s", msg)
	}
}

// Fatal records a fatal error of the code under test, such as "sync: unlock of unlocked mutex", and ends the schedule.
// With Options.ExpectFatal that is an outcome and no failure. Outside a run it panics; a seam that ends the process there asks
// Running first.
func Fatal(msg string) {
	t := current()
	if t == nil {
		panic("fatal error: " + msg)
	}
	if t.e.opt.ExpectFatal {
		t.e.fatal, t.e.over = msg, true
		panic(errAborted{})
	}
	t.fail(KindFatal, msg)
}
