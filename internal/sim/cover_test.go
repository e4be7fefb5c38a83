//go:build sim

package sim_test

import (
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

func TestCover_FailsWhatIsExploredLess(t *testing.T) {
	for _, c := range []struct {
		name     string
		threads  int
		strategy sim.Strategy
		want     string // in the failure; empty: there is none
	}{
		{"two threads", 2, nil, ""},
		{"two threads, more preemptions", 2, sim.Exhaustive(3), ""},
		{"two threads, without a bound", 2, sim.Exhaustive(sim.Unbounded), ""},
		{"two threads, one preemption", 2, sim.Exhaustive(1), "allow 2 preemptions"},
		{"two threads at random", 2, sim.PCT(3, 1), "explored whole"},
		{"three threads", 3, nil, ""},
		{"three threads, all", 3, sim.Exhaustive(2), ""},
		{"three threads, one preemption", 3, sim.Exhaustive(1), "allow 2 preemptions"},
		{"three threads, another depth", 3, sim.PCT(2, 1), "want depth 3"},
		{"three threads, uniform", 3, sim.Uniform(1), "want an exhaustive search"},
		{"three threads, replay", 3, sim.Replay("T0"), "want an exhaustive search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tb fakeTB
			r := sim.Cover(&tb, spinProgram(c.threads, 1), sim.Options{Strategy: c.strategy, Budget: 1, Time: 1}, true)
			switch {
			case (c.want == "") != (tb.fatal == ""), !strings.Contains(tb.fatal, c.want):
				t.Errorf("said %q, want %q", tb.fatal, c.want)
			case c.want == "" && !r.Exhausted && r.Schedules < 1000:
				t.Errorf("passes with %s", r)
			}
		})
	}
}
