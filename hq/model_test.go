//go:build sim && gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs of the model checker for mode Q: goroutines of one domain. What must
// hold after each step is in hierarchy_model_test.go, with mode HQ.

func inModeQ(name string, ticks int, strategy sim.Strategy, scripts ...string) crowd {
	return crowd{name: name, scripts: scripts, domains: make([]int, len(scripts)), tuning: defaultTuning,
		options: sim.Options{Ticks: ticks, Strategy: strategy}}
}

// allQueue is inModeQ with a lock whose waiters all queue from the start.
func allQueue(name string, ticks int, strategy sim.Strategy, scripts ...string) crowd {
	c := inModeQ(name, ticks, strategy, scripts...)
	c.begin = "queue"
	return c
}

// impatient is c with heads that forbid barging as soon as they look at the clock.
func impatient(c crowd) crowd {
	c.tuning.patience = -1
	return c
}

// Two goroutines: all schedules. A tick ends the budget of a waiter, which sleeps then.
func twoInQ() []crowd {
	return []crowd{
		inModeQ("lock", noTime, sim.Exhaustive(2), "aa", "aa"),
		inModeQ("try", noTime, sim.Exhaustive(2), "ta", "at"),
		inModeQ("sleep", 2, sim.Exhaustive(2), "aa", "aa"),
		allQueue("queue", noTime, sim.Exhaustive(2), "aa", "aa"),
		allQueue("queue, sleep", 2, sim.Exhaustive(2), "aa", "aa"),
		impatient(allQueue("queue, impatient", 2, sim.Exhaustive(2), "aa", "aa")),
		inModeQ("two locks, sleep", 2, sim.Exhaustive(2), "ab", "ba"),
	}
}

func moreInQ() []crowd {
	return []crowd{
		inModeQ("lock", noTime, sim.Exhaustive(2), "aa", "aa", "aa"),
		allQueue("queue", noTime, sim.Exhaustive(2), "aa", "aa", "aa"),
		allQueue("queue", noTime, sim.PCT(3, 1), "aa", "aa", "aa", "aa"),
		inModeQ("sleep", 4, sim.PCT(3, 1), "aa", "aa", "ta"),
		allQueue("queue, sleep", 4, sim.PCT(3, 1), "aa", "aa", "aa"),
		withOneNode(allQueue("queue, sleep, one node", 4, sim.PCT(3, 1), "aa", "aa", "aa")),
	}
}

// withOneNode is c with one node for each P.
func withOneNode(c crowd) crowd {
	c.nodes = 1
	return c
}

func TestModelQ(t *testing.T) {
	defer backToReality()
	for _, c := range append(twoInQ(), moreInQ()...) {
		p, o := c.program()
		t.Run(fmt.Sprintf("%s/%d %v", c.name, len(c.scripts), o.Strategy), func(t *testing.T) {
			sim.Cover(t, p, o, testing.Short())
		})
	}
}

// transitions of the lock word and of nodes, in the headers of lock_native.go and
// queue_native.go. T8 without T11, and N7, look like others.
var transitions = newTransitions()

func newTransitions() *sim.Transitions {
	return sim.NewTransitions("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13",
		"T14", "T15", "T16", "T17", "T18", "T19", "N1", "N2", "N3", "N4", "N5", "N6", "N8", "N9", "N10", "N11", "N12")
}

// sawWrite names the transition of a write, or objects to it.
func sawWrite(w sim.Write) error {
	name := ""
	old, now := uint32(w.Old), uint32(w.New)
	switch {
	case old == now:
		return nil
	case w.Object == "a" || w.Object == "b":
		name = wordTransition(old, now)
	case len(w.Object) > 4 && w.Object[:4] == "node" && w.Offset == unsafe.Offsetof(qnode{}.state):
		name = nodeTransition(old, now)
	case len(w.Object) > 4 && w.Object[:4] == "node" && w.Offset == unsafe.Offsetof(qnode{}.next) && now == left:
		name = "N6"
	default:
		return nil
	}
	if name == "" {
		return fmt.Errorf("%s: from %#x to %#x is no transition", w.Object, old, now)
	}
	return transitions.Took(name)
}

func wordTransition(old, now uint32) string {
	ref, mode := old&refMask != now&refMask, old&modeMask
	switch changed := (old ^ now) &^ refMask; {
	case changed == locked && now&locked != 0 && !ref:
		return "T1"
	case changed == locked && !ref:
		return "T2"
	case changed == pending && now&pending != 0 && !ref && mode == modeQ && old&refMask == 0:
		return "T3"
	case changed&^nosteal == pending|locked && now&(locked|nosteal) == locked && !ref:
		return "T4"
	case changed&^nosteal == pending && now&(pending|nosteal) == 0 && !ref:
		return "T5"
	case changed == 0 && mode == modeQ && now&refMask != 0:
		return "T6"
	case changed&^nosteal == locked && now&(locked|nosteal) == locked && mode == modeQ && now&refMask == 0:
		return "T7"
	case changed == locked|nosteal && now&(locked|nosteal) == locked && !ref:
		return "T8"
	case changed == 0 && mode == modeQ:
		return "T9"
	case changed == nosteal && now&nosteal != 0 && !ref:
		return "T10"
	case changed == nosteal && !ref:
		return "T11"
	case changed == parked && now&(parked|locked) == parked|locked && !ref:
		return "T12"
	case changed == parked|waking && now&(parked|waking) == waking && !ref:
		return "T13"
	case changed == modeHQ && mode == modeQ && old&refMask != 0:
		return "T14"
	case changed == modeHQ|modeClosing && mode == modeHQ && !ref:
		return "T15"
	case changed == modeClosing && mode == modeClosing && now&refMask == 0:
		return "T16"
	case changed == modeHQ|modeClosing && mode == modeClosing && !ref:
		return "T17"
	case changed == qOnly && !ref:
		return "T18"
	case changed == waking && now&waking == 0 && !ref:
		return "T19"
	}
	return ""
}

func nodeTransition(old, now uint32) string {
	type pair struct{ from, to uint32 }
	return map[pair]string{
		{free, waiting}: "N1", {waiting, head}: "N2", {waiting, abandoned}: "N3", {head, free}: "N4", {abandoned, free}: "N5",
		{waiting, skipped}: "N8", {skipped, out}: "N9", {skipped, abandoned}: "N10", {out, free}: "N11",
		{waiting, free}: "N12",
	}[pair{old, now}]
}

// Every transition is taken in some schedule of some program.
func TestModel_TakesEveryTransition(t *testing.T) {
	defer backToReality()
	transitions = newTransitions()
	hierarchy := []crowd{twoDomains, inflation, deflation, upAndDown, abandon, abandonInQ, abandonChanging, forbidding, fewNodes}
	for _, c := range append(append(twoInQ(), moreInQ()...), hierarchy...) {
		p, o := c.program()
		o.Strategy, o.Budget = sim.Uniform(1), 1500
		if r := sim.Explore(p, o); r.Failure != nil {
			t.Errorf("%s\n%s", r, r.Failure.Detail())
		}
	}
	t.Log(transitions)
	for _, name := range transitions.Untaken() {
		t.Errorf("no program takes %s", name)
	}
}

// qMutants are faults of mode Q, with the program that finds each.
var qMutants = []struct {
	name  string
	crowd crowd
}{
	{"hq: unlock in two halves", inModeQ("lock", noTime, sim.Exhaustive(2), "aa", "aa")},
	{"hq: sleeps though it is free", inModeQ("sleep", 2, sim.Exhaustive(2), "aa", "aa")},
	{"hq: leaves though it was taken", inModeQ("sleep", 4, sim.Uniform(1), "aa", "aa", "aa")},
	{"hq: sleepers told before parked is clear", inModeQ("sleep", 4, sim.PCT(4, 2), "aa", "aa", "aa")},
	{"hq: nobody is behind the head", allQueue("queue", noTime, sim.Exhaustive(1), "a", "a", "a")},
	{"hq: promotes two", allQueue("queue", noTime, sim.Exhaustive(1), "a", "a", "a")},
	{"hq: successor of one that left waits", allQueue("queue", noTime, sim.Exhaustive(2), "aa", "aa")},
}

// The reduction changes no outcome of shipped code, and no verdict on a seeded fault.
func TestModelQ_ReductionIsSound(t *testing.T) {
	defer backToReality()
	for _, c := range []struct {
		crowd  crowd
		mutant string
	}{
		{inModeQ("lock", noTime, sim.Exhaustive(2), "aa", "aa"), ""},
		{inModeQ("lock", noTime, sim.Exhaustive(2), "aa", "aa"), "hq: unlock in two halves"},
		{inModeQ("sleep", 1, sim.Exhaustive(1), "aa", "aa"), ""},
		{allQueue("queue", noTime, sim.Exhaustive(1), "aa", "aa"), ""},
		{allQueue("queue, three", noTime, sim.Exhaustive(1), "a", "a", "a"), ""},
		{allQueue("queue", noTime, sim.Exhaustive(2), "aa", "aa"), "hq: successor of one that left waits"},
	} {
		t.Run(c.crowd.name+"/"+c.mutant, func(t *testing.T) {
			p, o := c.crowd.program()
			o.Mutant = c.mutant
			sim.CompareReduction(t, p, o)
		})
	}
}
