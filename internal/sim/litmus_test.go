//go:build sim

package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// litmus is a program of a few loads and stores. Weak is the outcome by which memory models differ.
type litmus struct {
	name    string
	make    func(l *regs) []func()
	weak    string
	allowed []sim.Memory // where the weak outcome exists
}

// regs are shared words and what the threads read.
type regs struct {
	x, y, z sim.Uint32
	r       [4]uint32
}

func (l *regs) set(x *sim.Uint32, v uint32) { sim.StoreRelease32(x, v) }
func (l *regs) get(i int, x *sim.Uint32)    { l.r[i] = sim.LoadAcquire32(x) }

var litmusTests = []litmus{
	{"SB", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.get(0, &l.y) },
			func() { l.set(&l.y, 1); l.get(1, &l.x) },
		}
	}, "r=[0 0 0 0] x=1 y=1", []sim.Memory{sim.TSO, sim.AcqRel}},
	{"SB+fences", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); sim.Fence(); l.get(0, &l.y) },
			func() { l.set(&l.y, 1); sim.Fence(); l.get(1, &l.x) },
		}
	}, "r=[0 0 0 0] x=1 y=1", nil},
	{"SB+one heavy fence", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.get(0, &l.y) },
			func() { l.set(&l.y, 1); sim.HeavyFence(); l.get(1, &l.x) },
		}
	}, "r=[0 0 0 0] x=1 y=1", nil},
	{"SB atomic", func(l *regs) []func() {
		return []func(){
			func() { l.x.Store(1); l.r[0] = l.y.Load() },
			func() { l.y.Store(1); l.r[1] = l.x.Load() },
		}
	}, "r=[0 0 0 0] x=1 y=1", nil},
	{"SB+failed CAS", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.z.CompareAndSwap(1, 2); l.get(0, &l.y) },
			func() { l.set(&l.y, 1); l.z.CompareAndSwap(1, 2); l.get(1, &l.x) },
		}
	}, "r=[0 0 0 0] x=1 y=1", []sim.Memory{sim.AcqRel}}, // atomics are no fences for others there
	{"SB+yield", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); sim.Yield(); l.get(0, &l.y) },
			func() { l.set(&l.y, 1); sim.Yield(); l.get(1, &l.x) },
		}
	}, "r=[0 0 0 0] x=1 y=1", []sim.Memory{sim.AcqRel}},
	{"fences in order of the flag", func(l *regs) []func() { // who passed its fence first is seen from outside only
		return []func(){
			func() { sim.StorePlain32(&l.x, 1); sim.Fence(); sim.StorePlain32(&l.z, 1) },
			func() { sim.Fence(); l.r[0] = sim.LoadPlain32(&l.z); l.r[1] = sim.LoadPlain32(&l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=0", []sim.Memory{sim.AcqRel}},
	{"MP atomic flag", func(l *regs) []func() {
		return []func(){
			func() { sim.StorePlain32(&l.x, 1); l.y.Store(1) },
			func() { l.r[0] = l.y.Load(); l.r[1] = sim.LoadPlain32(&l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=1", nil},
	{"MP plain flag", func(l *regs) []func() {
		return []func(){
			func() { sim.StorePlain32(&l.x, 1); l.y.Store(1) },
			func() { l.r[0] = sim.LoadPlain32(&l.y); l.r[1] = sim.LoadPlain32(&l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=1", []sim.Memory{sim.AcqRel}},
	{"CoRR", func(l *regs) []func() {
		return []func(){
			func() { sim.StorePlain32(&l.x, 1) },
			func() { l.r[0] = sim.LoadPlain32(&l.x); l.r[1] = sim.LoadPlain32(&l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=0", nil},
	{"n6", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.get(0, &l.x); l.get(1, &l.y) },
			func() { l.set(&l.y, 2); l.set(&l.x, 2) },
		}
	}, "r=[1 0 0 0] x=1 y=2", []sim.Memory{sim.TSO, sim.AcqRel}},
	{"MP", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.set(&l.y, 1) },
			func() { l.get(0, &l.y); l.get(1, &l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=1", nil},
	{"MP plain", func(l *regs) []func() {
		return []func(){
			func() { sim.StorePlain32(&l.x, 1); sim.StorePlain32(&l.y, 1) },
			func() { l.r[0] = sim.LoadPlain32(&l.y); l.r[1] = sim.LoadPlain32(&l.x) },
		}
	}, "r=[1 0 0 0] x=1 y=1", []sim.Memory{sim.AcqRel}},
	{"LB", func(l *regs) []func() {
		return []func(){
			func() { l.get(0, &l.x); l.set(&l.y, 1) },
			func() { l.get(1, &l.y); l.set(&l.x, 1) },
		}
	}, "r=[1 1 0 0] x=1 y=1", nil},
	{"WRC", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1) },
			func() { l.get(0, &l.x); l.set(&l.y, 1) },
			func() { l.get(1, &l.y); l.get(2, &l.x) },
		}
	}, "r=[1 1 0 0] x=1 y=1", nil},
	{"IRIW", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1) },
			func() { l.set(&l.y, 1) },
			func() { l.get(0, &l.x); l.get(1, &l.y) },
			func() { l.get(2, &l.y); l.get(3, &l.x) },
		}
	}, "r=[1 0 1 0] x=1 y=1", []sim.Memory{sim.AcqRel}},
	{"IRIW atomic", func(l *regs) []func() {
		return []func(){
			func() { l.x.Store(1) },
			func() { l.y.Store(1) },
			func() { l.r[0] = l.x.Load(); l.r[1] = l.y.Load() },
			func() { l.r[2] = l.y.Load(); l.r[3] = l.x.Load() },
		}
	}, "r=[1 0 1 0] x=1 y=1", nil},
	{"2+2W", func(l *regs) []func() {
		return []func(){
			func() { l.set(&l.x, 1); l.set(&l.y, 2) },
			func() { l.set(&l.y, 1); l.set(&l.x, 2) },
		}
	}, "r=[0 0 0 0] x=1 y=1", nil},
}

// TestLitmus_WeakOutcomes explores each test wholly and asks whether the outcome that tells the models apart is reached.
func TestLitmus_WeakOutcomes(t *testing.T) {
	for _, l := range litmusTests {
		for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
			t.Run(fmt.Sprintf("%s/%s", l.name, m), func(t *testing.T) {
				res := sim.Run(t, l.program(), sim.Options{Strategy: sim.Exhaustive(sim.Unbounded), Memory: m})
				if !res.Exhausted {
					t.Fatal("not exhausted")
				}
				_, got := res.Outcomes[l.weak]
				if want := slices.Contains(l.allowed, m); got != want {
					t.Errorf("outcome %s: reached %v, want %v; all outcomes:\n%q", l.weak, got, want, res.OutcomeSet())
				}
			})
		}
	}
}

// program builds the threads anew in Setup, because they share the registers.
func (l litmus) program() sim.Program {
	var (
		r  *regs
		fs []func()
	)
	p := sim.Program{
		Name: l.name,
		Setup: func() {
			r = new(regs)
			fs = l.make(r)
			sim.Name(&r.x, "x")
			sim.Name(&r.y, "y")
			sim.Name(&r.z, "z")
		},
		Outcome: func() string { return fmt.Sprintf("r=%v x=%d y=%d", r.r, r.x.Load(), r.y.Load()) },
	}
	for i := range l.make(new(regs)) {
		p.Threads = append(p.Threads, func() { fs[i]() })
	}
	return p
}
