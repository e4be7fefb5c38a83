//go:build sim

package sim_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// flagProgram counts under a lock that its threads find behind a pointer, which
// nobody changes, while a flag is down, which somebody may raise.
func flagProgram(named, raise bool) sim.Program {
	type shared struct {
		where  sim.Pointer[sim.Mutex]
		raised sim.Uint32
		n      sim.Uint32
	}
	var s *shared
	add := func() {
		for range 2 {
			if s.raised.Load() != 0 {
				return
			}
			mu := s.where.Load()
			mu.Lock()
			s.n.Store(s.n.Load() + 1)
			mu.Unlock()
		}
	}
	p := sim.Program{
		Name: fmt.Sprintf("flag, named %v, raised %v", named, raise),
		Setup: func() {
			s = new(shared)
			s.where.Store(new(sim.Mutex))
			if named {
				sim.Name(s, "shared")
			}
		},
		Threads: []func(){add, add},
		Outcome: func() string { return fmt.Sprint(s.n.Load(), s.raised.Load()) },
	}
	if raise {
		p.Threads = append(p.Threads, func() { s.raised.Store(1) })
	}
	return p
}

// Names make the search shorter and change no outcome, whether the words that
// were still at first stay so or not.
func TestStillWords_ShortenTheSearchAndChangeNoOutcome(t *testing.T) {
	for _, raise := range []bool{false, true} {
		plain := sim.Explore(flagProgram(false, raise), sim.Options{})
		named := sim.Explore(flagProgram(true, raise), sim.Options{})
		all := sim.Explore(flagProgram(true, raise), sim.Options{Reduce: sim.NoReduction, Budget: 1 << 30})
		t.Logf("%s\n%s\n%s", plain, named, all)
		if !named.Exhausted || !reflect.DeepEqual(named.OutcomeSet(), all.OutcomeSet()) || !reflect.DeepEqual(plain.OutcomeSet(), all.OutcomeSet()) {
			t.Errorf("outcomes %q with names, %q without, %q without reduction", named.OutcomeSet(), plain.OutcomeSet(), all.OutcomeSet())
		}
		if named.States >= plain.States {
			t.Errorf("%d points with names, %d without", named.States, plain.States)
		}
	}
}

// A schedule that was found with still words left out replays with all of them.
func TestStillWords_FailureReplays(t *testing.T) {
	p := flagProgram(true, true)
	p.Final = func() error {
		if o := p.Outcome(); o == "3 1" {
			return fmt.Errorf("outcome %s", o)
		}
		return nil
	}
	f := sim.Explore(p, sim.Options{}).Failure
	if f == nil || !f.Reproduced {
		t.Fatalf("not found, or not reproduced: %+v", f)
	}
	again := sim.Explore(p, sim.Options{Strategy: sim.Replay(f.Schedule)}).Failure
	if again == nil || again.Kind != f.Kind || again.Steps != f.Steps {
		t.Fatalf("the replay: %+v", again)
	}
}

// Between the moment when a timer fires and its function's first step others run.
func TestTimer_FiredAndNothingDone(t *testing.T) {
	var w *sim.Uint32
	var outcome string
	r := sim.Explore(sim.Program{
		Name:  "timer",
		Setup: func() { w, outcome = new(sim.Uint32), "" },
		Threads: []func(){func() {
			tm := sim.AfterFunc(1, func() { w.Store(1) })
			outcome = fmt.Sprint(tm.Stop(), w.Load())
		}},
		Outcome: func() string { return outcome },
	}, sim.Options{Strategy: sim.Exhaustive(0)})
	if want := []string{"false 0", "false 1", "true 0"}; !reflect.DeepEqual(r.OutcomeSet(), want) {
		t.Errorf("outcomes %q, want %q", r.OutcomeSet(), want)
	}
}

// An object of a Quarantine is its thread's own until others can find it, and not longer.
func TestFreshObject_IsSharedOnceFound(t *testing.T) {
	type record struct{ a, b sim.Uint32 }
	var (
		pool sim.Quarantine[record]
		at   *sim.Pointer[record]
		seen uint32
	)
	p := sim.Program{
		Name: "publication",
		Setup: func() {
			at, seen = new(sim.Pointer[record]), 9
			sim.Name(at, "at")
		},
		Threads: []func(){
			func() {
				r := pool.Get()
				r.a.Store(1)
				r.b.Store(1)
				at.Store(r)
				r.a.Store(2)
				r.b.Store(2)
			},
			func() {
				if r := at.Load(); r != nil {
					seen = 10*r.b.Load() + r.a.Load()
				}
			},
		},
		Outcome: func() string { return fmt.Sprint(seen) },
	}
	sim.CompareReduction(t, p, sim.Options{Strategy: sim.Exhaustive(sim.Unbounded)})
	if got, want := sim.Explore(p, sim.Options{}).OutcomeSet(), []string{"11", "12", "22", "9"}; !reflect.DeepEqual(got, want) {
		t.Errorf("outcomes %q, want %q", got, want)
	}
}
