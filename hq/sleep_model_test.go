//go:build sim && gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs for waiters who have lost their patience, and for those who sleep in a
// row. Ticks are what ends budgets.
var (
	impatientLone = impatient(inModeQ("lone waiter, impatient", 2, sim.Exhaustive(2), "aa", "aa"))
	impatientMore = impatient(inModeQ("lone waiter before a queue, impatient", 4, sim.PCT(3, 1), "aa", "aa", "ta"))
	row           = inModeQ("a row of sleepers", 4, sim.PCT(4, 2), "a", "a", "a")
	longRow       = inModeQ("a long row of sleepers", 8, sim.PCT(4, 2), "aa", "a", "a", "a")
	threeInRow    = hurried(inModeQ("three in a row", noTime, sim.PCT(5, 1), "a", "a", "a", "a"))
	twoRows       = inModeQ("rows of two locks", 8, sim.PCT(4, 2), "ab", "ba", "a", "b")
)

// hurried is c with waiters whose budget is spent as soon as they look at the clock.
func hurried(c crowd) crowd {
	c.tuning.budget = -1
	return c
}

func TestModel_ImpatienceAndSleep(t *testing.T) {
	defer backToReality()
	for _, c := range []crowd{impatientLone, impatientMore, row, longRow, threeInRow, twoRows} {
		p, o := c.program()
		cover(t, fmt.Sprintf("%s/%d", c.name, len(c.scripts)), p, o)
	}
}

func TestMutants_ImpatienceAndSleep(t *testing.T) {
	defer backToReality()
	var faults []sim.Fault
	for _, m := range []struct {
		name  string
		crowd crowd
	}{
		{"hq: lone waiter keeps others out", impatientLone},
		{"hq: who takes the lock forgets the row", row},
		{"hq: who sleeps again forgets the row", longRow},
		{"hq: a row is put back in secret", row},
		{"hq: who leaves by itself forgets the others", threeInRow},
		{"hq: a called sleeper is never done", row},
		{"hq: a called sleeper that is late is never done", longRow},
		{"hq: nobody looks who has relied on waking", threeInRow},
		{"hq: one row takes the place of another", longRow},
	} {
		p, o := m.crowd.program()
		o.Budget = 100_000
		faults = append(faults, sim.Fault{Mutant: m.name, Program: p, Options: o})
	}
	sim.RunFaults(t, faults)
}
