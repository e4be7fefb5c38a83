//go:build sim

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// verdict is what a reduction must not change.
type verdict struct {
	failed   bool
	kind     sim.Kind
	outcomes []string
}

func judge(p sim.Program, o sim.Options) (verdict, sim.Result) {
	r := sim.Explore(p, o)
	v := verdict{outcomes: r.OutcomeSet()}
	if r.Failure != nil { // which outcomes came before the failure depends on the order of the search
		return verdict{failed: true, kind: r.Failure.Kind}, r
	}
	return v, r
}

// TestReduction_ChangesNoVerdict compares each reduction with none, for programs that pass, lose updates, lose wake-ups
// and depend on the order of plain memory under a lock.
func TestReduction_ChangesNoVerdict(t *testing.T) {
	programs := []struct {
		make   func() sim.Program
		mutant string
	}{
		{func() sim.Program { return spinProgram(2, 1) }, ""},
		{func() sim.Program { return spinProgram(2, 1) }, "load then store"},
		{func() sim.Program { return spinProgram(3, 1) }, ""},
		{parkProgram, ""},
		{parkProgram, "look after the announcement left out"},
		{timerProgram, ""},
	}
	for _, p := range programs {
		for _, m := range []sim.Memory{sim.SC, sim.TSO} {
			for _, bound := range []int{0, 1, 2, sim.Unbounded} {
				o := sim.Options{Memory: m, Strategy: sim.Exhaustive(bound), Mutant: p.mutant, Reduce: sim.NoReduction, Budget: 300_000}
				want, all := judge(p.make(), o)
				if !all.Exhausted && all.Failure == nil {
					continue // too large to compare
				}
				for _, red := range []sim.Reduction{sim.ByHistory, sim.ByState} {
					o.Reduce = red
					got, r := judge(p.make(), o)
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s, mutant %q, %v, bound %d, reduction %d: %+v, want %+v", r.Program, p.mutant, m, bound, red, got, want)
					}
					t.Logf("%s, mutant %q, %v, bound %d: %d schedules, %d with reduction %d, %d outcomes",
						r.Program, p.mutant, m, bound, all.Schedules, r.Schedules, red, len(want.outcomes))
				}
			}
		}
	}
}

// TestReduction_SameVerdictsOnTheModels compares ByState, which believes what the models say about themselves, with
// ByHistory, which does not: outcomes of those that pass, and of those that fail the kind and the fewest preemptions.
func TestReduction_SameVerdictsOnTheModels(t *testing.T) {
	skipUnderRace(t)
	plain, perP := mutexRules{nodes: 1}, rwRules{plain: true, perP: true, grow: true, shrink: true}
	for _, c := range []struct {
		p      sim.Program
		mutant string
	}{
		{mutexProgram(fullMutex, "L,L"), ""},
		{mutexProgram(fullMutex, "D,L"), ""},
		{mutexProgram(plain, "L,L"), "no second tag load"},
		{mutexProgram(plain, "L,L"), "race path: count without a fence"},
		{mutexProgram(fullMutex, "L,L"), "tag not validated"},
		{mutexProgram(fullMutex, "L,L"), "quiet without the bucket lock"},
		{mutexProgram(plain, "L,L,L"), "nobody looks"},
		{mutexProgram(plain, "D,L,L"), "leaver drops its duty"},
		{awakeProgram(plain, "L,L"), "A5: holder of A parks"},
		{condProgram(plain, "W,B"), ""},
		{condProgram(plain, "W,L,b"), "setter skips the look"},
		{resizeProgram("L,L,Z"), ""},
		{resizeProgram("L,L,Z"), "publish before move"},
		{rwProgram(perP, "r,w"), ""},
		{rwProgram(perP, "r,w"), "undo without notice"},
		{rwProgram(perP, "r,w"), "evt read after the scan"},
		{rwProgram(perP, "r,d"), "timed writer leaves the mode"},
	} {
		var (
			v [2]verdict
			r [2]sim.Result
		)
		for i, red := range []sim.Reduction{sim.ByState, sim.ByHistory} {
			v[i], r[i] = judge(c.p, sim.Options{Memory: sim.TSO, Reduce: red, Mutant: c.mutant, Strategy: sim.Exhaustive(3), Procs: 2})
			if f := r[i].Failure; f != nil {
				v[i].outcomes = []string{fmt.Sprintf("%d preemptions", f.Preemptions)}
			} else if !r[i].Exhausted {
				t.Fatalf("%s", r[i])
			}
		}
		if !reflect.DeepEqual(v[0], v[1]) {
			t.Errorf("%s, mutant %q: by state %+v, by history %+v", r[0].Program, c.mutant, v[0], v[1])
		}
		t.Logf("%s, mutant %q: %d schedules by state, %d by history; %v", r[0].Program, c.mutant, r[0].Schedules, r[1].Schedules, v[0])
	}
}

// TestReduction_LitmusTests compares the sets of outcomes of all litmus tests.
func TestReduction_LitmusTests(t *testing.T) {
	for _, l := range litmusTests {
		for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
			for _, bound := range []int{1, sim.Unbounded} {
				o := sim.Options{Strategy: sim.Exhaustive(bound), Memory: m, Reduce: sim.NoReduction}
				want, all := judge(l.program(), o)
				if !all.Exhausted {
					t.Fatalf("%s", all)
				}
				for _, red := range []sim.Reduction{sim.ByHistory, sim.ByState} {
					if red == sim.ByState && m == sim.AcqRel {
						continue // refused
					}
					o.Reduce = red
					if got, r := judge(l.program(), o); !reflect.DeepEqual(got, want) {
						t.Errorf("%s, bound %d, reduction %d: outcomes\n%q\nwant\n%q", r, bound, red, got.outcomes, want.outcomes)
					}
				}
			}
		}
	}
}

// TestReduction_RandomPrograms makes small programs at random and compares the sets of outcomes.
func TestReduction_RandomPrograms(t *testing.T) {
	n := 300
	switch {
	case raceEnabled:
		n = 3
	case testing.Short():
		n = 100
	}
	saved := 0
	for seed := range uint64(n) {
		for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
			for _, bound := range []int{1, sim.Unbounded} {
				o := sim.Options{Memory: m, Strategy: sim.Exhaustive(bound), Reduce: sim.NoReduction, Budget: 20_000}
				want, all := judge(randomProgram(seed), o)
				if !all.Exhausted {
					continue
				}
				for _, red := range []sim.Reduction{sim.ByHistory, sim.ByState} {
					if red == sim.ByState && m == sim.AcqRel {
						continue // refused
					}
					o.Reduce = red
					got, r := judge(randomProgram(seed), o)
					saved += all.Schedules - r.Schedules
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("seed %d, %v, bound %d, reduction %d: outcomes\n%q\nwant\n%q", seed, m, bound, red, got.outcomes, want.outcomes)
					}
				}
			}
		}
	}
	if saved == 0 {
		t.Error("the reductions saved nothing")
	}
	t.Logf("%d schedules saved", saved)
}

// randomProgram makes 2 or 3 threads of up to 4 operations on 3 words.
func randomProgram(seed uint64) sim.Program {
	rng := rand.New(rand.NewPCG(seed, 1))
	type op struct {
		kind, word int
		val        uint32
	}
	threads := make([][]op, 2+rng.IntN(2))
	for i := range threads {
		for range 2 + rng.IntN(7-2*len(threads)) {
			threads[i] = append(threads[i], op{rng.IntN(14), rng.IntN(3), 1 + rng.Uint32N(2)})
		}
	}
	var (
		words *[3]sim.Uint32
		mu    *sim.Mutex
		under []int // plain memory under mu
		seen  [3][]uint32
	)
	p := sim.Program{
		Name: fmt.Sprintf("random %d", seed),
		Setup: func() {
			words = new([3]sim.Uint32)
			mu, under = new(sim.Mutex), under[:0]
			sim.Name(words, "w")
			sim.Name(mu, "mu")
			for i := range seen {
				seen[i] = seen[i][:0]
			}
		},
		Outcome: func() string {
			return fmt.Sprint(seen, under, words[0].Load(), words[1].Load(), words[2].Load())
		},
		State: func(h *sim.Hash) {
			for _, id := range under {
				h.Add(uint64(id) + 1)
			}
		},
	}
	for i, ops := range threads {
		p.Threads = append(p.Threads, func() {
			for _, o := range ops {
				w := &words[o.word]
				switch o.kind {
				case 0:
					w.Store(o.val)
				case 1, 2:
					sim.StoreRelease32(w, o.val)
				case 3, 4:
					seen[i] = append(seen[i], sim.LoadAcquire32(w))
				case 5:
					if w.CompareAndSwap(0, o.val) {
						seen[i] = append(seen[i], 99)
					}
				case 6:
					sim.StorePlain32(w, o.val)
					seen[i] = append(seen[i], sim.LoadPlain32(&words[(o.word+1)%3]))
				case 7:
					sim.HeavyFence()
				case 8:
					mu.Lock()
					under = append(under, i)
					mu.Unlock()
				case 9:
					sim.Yield()
				case 10:
					sim.Fence()
				case 11:
					seen[i] = append(seen[i], sim.WaitWhileEqualFor32(w, 0, 1))
				case 12:
					sim.AfterFunc(1, func() { w.Store(o.val) })
				case 13:
					sim.StorePlain32(w, uint32(sim.Choose(2)))
				}
			}
		})
	}
	return p
}

// parkProgram is an event: the waiter announces itself, looks, and sleeps; the setter sets, and wakes who is announced.
func parkProgram() sim.Program {
	type event struct {
		set, waiters sim.Uint32
		p            sim.Parker
	}
	var (
		e     *event
		order []string
	)
	return sim.Program{
		Name: "event",
		Setup: func() {
			e, order = new(event), order[:0]
			sim.Name(e, "event")
		},
		Threads: []func(){
			func() {
				e.p.Prepare()
				e.waiters.Store(1)
				if sim.Mutant("look after the announcement left out") || e.set.Load() == 0 {
					e.p.Park("event")
				} else if !e.waiters.CompareAndSwap(1, 0) {
					e.p.Park("late")
				}
				order = append(order, "woken")
			},
			func() {
				order = append(order, "set")
				e.set.Store(1)
				if e.waiters.CompareAndSwap(1, 0) {
					e.p.Unpark()
				}
			},
		},
		Outcome: func() string { return fmt.Sprint(order, e.set.Load(), e.waiters.Load()) },
		State: func(h *sim.Hash) {
			for _, o := range order {
				h.Add(uint64(len(o)))
			}
		},
	}
}

// timerProgram is a wait with a time-out, which races the signal.
func timerProgram() sim.Program {
	var (
		state *sim.Uint32 // 3 waiting, 1 signalled, 2 timed out
		p     *sim.Parker
		who   string
	)
	return sim.Program{
		Name: "timed wait",
		Setup: func() {
			state, p, who = new(sim.Uint32), new(sim.Parker), ""
			sim.Name(state, "state")
			sim.Name(p, "parker")
		},
		Threads: []func(){
			func() {
				p.Prepare()
				state.Store(3)
				tm := sim.AfterFunc(5, func() {
					if state.CompareAndSwap(3, 2) {
						p.Unpark()
					}
				})
				p.Park("timed")
				who = fmt.Sprint(state.Load(), tm.Stop())
			},
			func() {
				if state.CompareAndSwap(3, 1) {
					p.Unpark()
				}
			},
		},
		Outcome: func() string { return who },
		State:   func(h *sim.Hash) { h.Add(uint64(len(who))) },
	}
}
