//go:build sim

package parking

import (
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// A checker that has never found anything is not trusted: each fault that is
// seeded in this package is found on the program named here.
var mutants = []struct {
	name     string
	program  string
	threads  int
	strategy sim.Strategy
}{
	{"park: not validated", "park, unpark", 2, sim.Exhaustive(2)},
	{"park: counted after validate", "park, unpark of a word", 2, sim.Exhaustive(2)},
	{"park: counted without a fence", "park, unpark of a word", 2, sim.Exhaustive(2)},
	{"close: park does not look", "close, park", 2, sim.Exhaustive(2)},
	{"close: strays are left", "close, requeue by another table", 3, sim.Exhaustive(2)},
	{"leave: stays queued", "timed park, unpark", 2, sim.Exhaustive(2)},
	{"leave: moves not compared", "timed park, requeue", 2, sim.Uniform(1)},
	{"unpark: signals twice", "park, unpark", 2, sim.Exhaustive(2)},
	{"unpark: turn is not passed on", "unpark in turn", 3, sim.Exhaustive(2)},
	{"resize: mark not looked at", "resize, park, unpark", 2, sim.Exhaustive(2)},
	{"resize: newcomers stay behind", "resize, waitv", 3, sim.Exhaustive(2)},
	{"resize: successor told late", "resize, park, unpark", 2, sim.Exhaustive(2)},
	{"resize: old count falls first", "resize, park, unpark of a word", 3, sim.Uniform(1)},
	{"waiting: no second look", "resize, park, unpark of a word", 3, sim.Exhaustive(2)},
	{"birth: not one at a time", "first use", 2, sim.Exhaustive(2)},
	{"slots: change after a final choice", "immutable, park, unpark", 2, sim.Exhaustive(2)},
	{"requeue: counted late", "requeue, announced", 3, sim.Exhaustive(2)},
	{"requeue: key stays", "requeue", 2, sim.Exhaustive(2)},
	{"waitv: others stay queued", "waitv", 2, sim.Exhaustive(2)},
	{"waitv: late wakers not awaited", "waitv, two wakers", 3, sim.Exhaustive(2)},
	{"alarm: stop does not wait", "timed park, unpark", 2, sim.Exhaustive(2)},
	{"timed: no re-arm", "timed park, unpark", 2, sim.Exhaustive(2)},
	{"dequeue: other queues get lost", "two queues in a bucket", 3, sim.Exhaustive(2)},
}

func programNamed(t *testing.T, name string, threads int) sim.Program {
	for _, p := range append(twoThreads(), moreThreads()...) {
		if p.Name == name && (len(p.Threads) == 2) == (threads == 2) {
			return p
		}
	}
	t.Fatalf("no program %q of %d threads", name, threads)
	panic("unreachable")
}

func TestMutants(t *testing.T) {
	var faults []sim.Fault
	for _, m := range mutants {
		faults = append(faults, sim.Fault{Mutant: m.name, Program: programNamed(t, m.program, m.threads),
			Options: sim.Options{Memory: sim.TSO, Strategy: m.strategy, Budget: 300_000}})
	}
	sim.RunFaults(t, faults)
}
