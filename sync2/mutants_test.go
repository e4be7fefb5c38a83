//go:build sim && !sync2_std

package sync2

import (
	"slices"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// A seeded fault of the shipped code, present in runs that ask for it by name,
// and what finds it.
type seeded struct {
	name     string
	mode     mode
	program  sim.Program
	strategy sim.Strategy
}

// The faults that need threads to change Ps.
var migrating = map[string]bool{"rwmutex: taken back on another P": true}

var allMutants = slices.Concat(mutexMutants, rwMutants, condMutants)

// A checker that has never found anything is not trusted: each seeded fault must
// be found on the program that is named with it.
func TestMutants(t *testing.T) {
	defer backToReality()
	killed, survived := 0, 0
	for _, m := range allMutants {
		r := m.explore(5_000_000)
		if r.Failure == nil {
			survived++
			t.Errorf("%s survived: %s", m.name, r)
			continue
		}
		killed++
		t.Logf("%s killed: %s", m.name, r)
	}
	t.Logf("mutants: %d killed, %d survived", killed, survived)
}

// With next to no exploration some faults are missed: it is the search that
// finds them, not chance.
func TestMutants_SurviveOneSchedule(t *testing.T) {
	defer backToReality()
	survived := 0
	for _, m := range allMutants {
		if m.explore(1).Failure == nil {
			survived++
		}
	}
	if survived == 0 {
		t.Error("one schedule finds every fault")
	}
}

func (m seeded) explore(budget int) sim.Result {
	return sim.Explore(m.mode.on(m.program), sim.Options{Strategy: m.strategy,
		Memory: m.mode.memory, Nodes: []int{0, 1, 0}, Time: 3 * time.Minute, Budget: budget, Mutant: m.name,
		Migrate: migrating[m.name]})
}
