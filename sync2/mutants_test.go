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

var allMutants = slices.Concat(mutexMutants, rwMutants, condMutants, doMutants)

// A checker that has never found anything is not trusted: each seeded fault must
// be found on the program that is named with it.
func TestMutants(t *testing.T) {
	defer backToReality()
	var faults []sim.Fault
	for _, m := range allMutants {
		faults = append(faults, sim.Fault{Mutant: m.name, Program: m.mode.on(m.program), Options: sim.Options{
			Strategy: m.strategy, Memory: m.mode.memory, Nodes: []int{0, 1, 0}, Time: 3 * time.Minute, Budget: 5_000_000,
			Migrate: migrating[m.name]}})
	}
	sim.RunFaults(t, faults)
}
