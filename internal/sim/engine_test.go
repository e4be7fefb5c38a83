//go:build sim

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// spinLock is a test-and-test-and-set lock, right or wrong by a mutant.
type spinLock struct{ word sim.Uint32 }

func (l *spinLock) lock() {
	for {
		if l.word.Load() == 0 {
			if sim.Mutant("load then store") {
				l.word.Store(1)
				return
			}
			if l.word.CompareAndSwap(0, 1) {
				return
			}
		}
		sim.Pause()
	}
}

func (l *spinLock) unlock() { l.word.Store(0) }

// spinProgram is n threads that increment a plain counter under a spin lock, rounds times each.
func spinProgram(n, rounds int) sim.Program {
	var (
		l     *spinLock
		count int
		order []int
	)
	p := sim.Program{
		Name: fmt.Sprintf("spin lock, %d threads, %d rounds", n, rounds),
		Setup: func() {
			l, count, order = new(spinLock), 0, order[:0]
			sim.Name(l, "lock")
		},
		Final: func() error {
			if count != n*rounds {
				return fmt.Errorf("%d increments counted, want %d", count, n*rounds)
			}
			return nil
		},
		Outcome: func() string { return fmt.Sprint(order) },
		State: func(h *sim.Hash) {
			for _, id := range order {
				h.Add(uint64(id))
			}
		},
	}
	for id := range n {
		p.Threads = append(p.Threads, func() {
			for i := range rounds {
				sim.At(i)
				l.lock()
				c := count
				order = append(order, id)
				sim.Step("inside")
				count = c + 1
				l.unlock()
			}
		})
	}
	return p
}

func TestExhaustive_CorrectLockPasses(t *testing.T) {
	for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
		if r := sim.Run(t, spinProgram(2, 2), sim.Options{Memory: m, Strategy: sim.Exhaustive(sim.Unbounded)}); !r.Exhausted {
			t.Error("not exhausted")
		}
	}
	if r := sim.Run(t, spinProgram(3, 1), sim.Options{}); !r.Exhausted {
		t.Error("not exhausted")
	}
}

func TestStrategies_FindTheBrokenLockAndReplayIt(t *testing.T) {
	for _, s := range []sim.Strategy{
		sim.Exhaustive(2), sim.Exhaustive(sim.Unbounded), sim.PCT(3, 1), sim.Uniform(1),
	} {
		t.Run(s.String(), func(t *testing.T) {
			o := sim.Options{Strategy: s, Mutant: "load then store"}
			r := sim.Explore(spinProgram(2, 1), o)
			f := r.Failure
			if f == nil {
				t.Fatalf("%s", r)
			}
			t.Logf("%s\n%s", r, f.Detail())
			if f.Kind != sim.KindFinal || f.Preemptions != 2 || !f.Reproduced {
				t.Errorf("failure: %v, %d preemptions, reproduced %v", f, f.Preemptions, f.Reproduced)
			}
			o.Strategy = sim.Replay(f.Schedule)
			again := sim.Explore(spinProgram(2, 1), o)
			if again.Failure == nil || again.Failure.Message != f.Message || again.Failure.Steps != f.Steps {
				t.Errorf("replay: %v, want %v", again.Failure, f)
			}
			if !slices.ContainsFunc(f.Trace, func(e sim.Event) bool {
				return e.Word == "lock.word" && e.Op == "Store" && e.Old == "0" && e.New == "1" && strings.HasPrefix(e.At, "engine_test.go:")
			}) {
				t.Errorf("trace does not show the store of 1:\n%s", f.Detail())
			}
		})
	}
}

// TestShrink_KeepsWhatMatters: a failure that a random walk of many steps found is told in few.
func TestShrink_KeepsWhatMatters(t *testing.T) {
	for seed := range uint64(5) {
		r := sim.Explore(spinProgram(4, 5), sim.Options{Strategy: sim.Uniform(seed * 1000), Mutant: "load then store"})
		f := r.Failure
		if f == nil || !f.Reproduced {
			t.Fatalf("%s", r)
		}
		if f.Preemptions > 2 || f.FoundSteps < 80 {
			t.Errorf("%d steps, %d preemptions, from %d steps:\n%s", f.Steps, f.Preemptions, f.FoundSteps, f.Detail())
		}
	}
}

// fakeTB records what Run says.
type fakeTB struct{ log, fatal string }

func (f *fakeTB) Helper()                   {}
func (f *fakeTB) Name() string              { return "TestX/a_[L_L]" }
func (f *fakeTB) Logf(s string, a ...any)   { f.log += fmt.Sprintf(s, a...) }
func (f *fakeTB) Fatalf(s string, a ...any) { f.fatal += fmt.Sprintf(s, a...) }

func TestRun_PrintsACommandThatReplays(t *testing.T) {
	var tb fakeTB
	o := sim.Options{Mutant: "load then store"}
	sim.Run(&tb, spinProgram(2, 1), o)
	_, after, ok := strings.Cut(tb.fatal, "HQSYNC_SIM_REPLAY='")
	schedule, rest, _ := strings.Cut(after, "'")
	if !ok || rest != " go test -tags sim -run '^TestX$/^a_\\[L_L\\]$'" {
		t.Fatalf("%s", tb.fatal)
	}
	t.Setenv("HQSYNC_SIM_REPLAY", schedule)
	again := fakeTB{}
	if r := sim.Run(&again, spinProgram(2, 1), o); r.Schedules != 1 || r.Strategy != "replay" || r.Failure == nil {
		t.Errorf("%s", r)
	}
	for _, run := range []func(*fakeTB){
		func(tb *fakeTB) { sim.Run(tb, spinProgram(2, 1), sim.Options{}) },
		func(tb *fakeTB) { sim.Cover(tb, spinProgram(2, 1), sim.Options{}, false) },
	} {
		var good fakeTB
		run(&good)
		if good.fatal != "" || !strings.Contains(good.log, "replay") {
			t.Errorf("%+v", good)
		}
	}
}

func TestBudget_IsKept(t *testing.T) {
	if r := sim.Explore(spinProgram(3, 3), sim.Options{Budget: 100}); r.Schedules != 100 || r.Exhausted || !strings.Contains(r.String(), "100 schedules, budget spent") {
		t.Errorf("%s", r)
	}
	if r := sim.Explore(spinProgram(3, 30), sim.Options{Strategy: sim.Uniform(1), Time: 20 * time.Millisecond}); r.Schedules == 0 || r.Exhausted {
		t.Errorf("%s", r)
	}
}

func BenchmarkSteps(b *testing.B) {
	for _, s := range []sim.Strategy{sim.Uniform(1), sim.PCT(3, 1), sim.Exhaustive(3), sim.Exhaustive(sim.Unbounded)} {
		b.Run(s.String(), func(b *testing.B) {
			r := sim.Explore(spinProgram(3, 3), sim.Options{Strategy: s, Budget: max(b.N/30, 1)})
			b.ReportMetric(float64(r.Took.Nanoseconds())/float64(r.Steps), "ns/step")
			b.ReportMetric(float64(r.Took.Nanoseconds())/float64(r.Schedules), "ns/schedule")
		})
	}
}
