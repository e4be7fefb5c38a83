//go:build sim

package locks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// program is so many threads that take and release the lock so many times each.
func program(make func() Lock, threads, rounds int) sim.Program {
	var l Lock
	inside, entered := 0, 0
	p := sim.Program{
		Setup: func() { l, inside, entered = make(), 0, 0 },
		Final: func() error {
			if entered != threads*rounds {
				return errors.New("a section is missing")
			}
			return nil
		},
	}
	for i := range threads {
		p.Threads = append(p.Threads, func() {
			for range rounds {
				l.Lock(i)
				inside++
				sim.Assert(inside == 1, "two owners")
				sim.Step("in the section")
				entered++
				inside--
				l.Unlock(i)
			}
		})
	}
	return p
}

// Two threads on two domains, every schedule with two preemptions; stores go through store buffers as on amd64.
func TestModel(t *testing.T) {
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			sim.Cover(t, program(func() Lock { return eager(k.New(crowd(2))) }, 2, 3), sim.Options{Memory: sim.TSO}, testing.Short())
		})
	}
}

// Three and four threads, two to a domain: hand-over within a domain, between domains, and both kinds of queue at once.
func TestModel_Crowd(t *testing.T) {
	if testing.Short() {
		t.Skip("long: random schedules of up to four threads")
	}
	places := []Place{{0, 0}, {0, 0}, {1, 0}, {2, 1}}
	for _, k := range Kinds {
		for threads := 3; threads <= 4; threads++ {
			p := program(func() Lock { return eager(k.New(places[:threads])) }, threads, 3)
			budget := 8_000
			if k.Name == "tas" { // under priorities two who swap in vain wake each other for ever, and the owner never runs
				budget = 100_000
			} else {
				t.Run(fmt.Sprint(k.Name, ", ", threads), func(t *testing.T) {
					sim.Cover(t, p, sim.Options{Memory: sim.TSO}, testing.Short())
				})
			}
			t.Run(fmt.Sprint(k.Name, ", ", threads, ", uniform"), func(t *testing.T) {
				sim.Run(t, p, sim.Options{Memory: sim.TSO, Strategy: sim.Uniform(uint64(threads)), Budget: budget})
			})
		}
	}
}

// The hierarchical lock passes through all its modes, from each of those it can be found in.
func TestModel_HQKernelChangesModes(t *testing.T) {
	modes := map[uint32]bool{}
	check := func(t *testing.T, make func([]Place) Lock, threads, rounds int, o sim.Options) {
		var l *HQKernel
		p := program(func() Lock { l = make(crowd(threads)).(*HQKernel); return l }, threads, rounds)
		p.Check = func() error {
			modes[l.word.Load()&hqModeMask] = true
			return nil
		}
		sim.Run(t, p, o)
	}
	t.Run("two", func(t *testing.T) { check(t, undecided, 2, 3, sim.Options{Memory: sim.TSO}) })
	if len(modes) != 3 {
		t.Errorf("%d modes seen, want 3", len(modes))
	}
	clear(modes)
	flat := func(threads []Place) Lock { return eager(NewHQKernel(threads)) }
	budget := 10_000
	if testing.Short() {
		budget = 3_000
	}
	t.Run("four", func(t *testing.T) {
		check(t, flat, 4, 3, sim.Options{Memory: sim.TSO, Strategy: sim.Uniform(1), Budget: budget})
	})
	if len(modes) != 3 {
		t.Errorf("%d modes seen from a flat queue, want 3", len(modes))
	}
	t.Run("three undecided", func(t *testing.T) {
		check(t, undecided, 3, 3, sim.Options{Memory: sim.TSO, Strategy: sim.Uniform(1), Budget: budget})
	})
}

// racyTAS takes the word by two operations.
type racyTAS struct{ TAS }

func (l *racyTAS) Lock(int) {
	for l.word.Load() != 0 {
		pause()
	}
	l.word.Store(1)
}

// hastyMCS takes an unlinked successor for none.
type hastyMCS struct{ *MCS }

func (l hastyMCS) Unlock(thread int) {
	if next := l.nodes[thread].next.Load(); next != 0 {
		storeRelease(&l.nodes[next-1].granted, 1)
	} else {
		l.tail.CompareAndSwap(refOf(thread), 0)
	}
}

// A checker that finds nothing is not trusted.
func TestModel_FindsBrokenLocks(t *testing.T) {
	for name, broken := range map[string]func() Lock{
		"racy": func() Lock { return new(racyTAS) }, "hasty": func() Lock { return hastyMCS{NewMCS(2)} },
	} {
		if r := sim.Explore(program(broken, 2, 2), sim.Options{}); r.Failure == nil {
			t.Errorf("%s lock passes: %s", name, r)
		}
	}
}
