//go:build sim

package rt

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs of the state machine behind Parker, for both twins. One thread, the
// owner, waits in a queue of one place; CONTRIBUTING.md says how to read a trace.

// A place is that queue, with permits for waits that have not begun.
type place struct {
	p       machine
	mu      sim.Mutex // guards what follows
	queued  bool
	permits int

	ticket  sim.Uint32 // of the owner's last wait, plus 1
	kicks   sim.Uint32 // bit i: somebody is about to kick the i-th wait
	waits   uint32
	signals int // as wakers count them
	woken   int // as the owner does
}

type operation func(*place)

// wait takes a permit or waits for a signal. Only if limited it may give up when it is kicked.
func wait(reason Reason, limited bool) operation {
	return func(q *place) {
		q.mu.Lock()
		if q.permits > 0 {
			q.permits--
			q.mu.Unlock()
			return
		}
		ticket := q.p.Prepare()
		sim.Assert(ticket == q.waits*genUnit, "two waits have the same ticket")
		n := q.waits
		q.waits++
		q.queued = true
		q.mu.Unlock()
		q.ticket.Store(ticket + 1)
		for q.p.Park(reason, 0) == Kicked {
			sim.Assert(q.kicks.Load()&(1<<n) != 0, "kicked by nobody")
			q.mu.Lock()
			inside := q.queued
			if limited {
				q.queued = false
			}
			q.mu.Unlock()
			if inside && limited {
				q.p.Leave()
				return
			}
			q.p.Rearm()
		}
		q.woken++
	}
}

// refuse begins a wait and ends it before it parks.
func refuse(q *place) {
	q.p.Prepare()
	q.waits++
	q.p.Leave()
}

// wake signals the owner, or leaves a permit.
func wake(q *place) {
	q.mu.Lock()
	inside := q.queued
	q.queued = false
	if !inside {
		q.permits++
	}
	q.mu.Unlock()
	if inside {
		q.p.Unpark(0)
		q.signals++
	}
}

// kick kicks the wait that was the last when it began.
func kick(q *place) {
	ticket := q.ticket.Load()
	if ticket == 0 {
		return
	}
	q.kicks.Or(1 << ((ticket - 1) / genUnit))
	q.p.Kick(ticket - 1)
}

type list = []operation

func program(name string, threads ...list) sim.Program {
	var q *place
	p := sim.Program{
		Name: name,
		Setup: func() {
			q = new(place)
			sim.Name(q, "q")
			sim.Name(&q.p.state, "state", "", "", "", "generation")
		},
		Watch: func(w sim.Write) error {
			if w.Object != "state" {
				return nil
			}
			return takes(uint32(w.Old), uint32(w.New))
		},
		Final: func() error {
			switch s := q.p.state.Load(); {
			case s != q.waits*genUnit:
				return fmt.Errorf("state %#x after %d waits", s, q.waits)
			case q.signals != q.woken:
				return fmt.Errorf("%d signals, %d waits that they ended", q.signals, q.woken)
			}
			return nil
		},
	}
	for _, ops := range threads {
		p.Threads = append(p.Threads, func() {
			for _, op := range ops {
				op(q)
			}
		})
	}
	return p
}

var transitions = newTransitions()

func newTransitions() *sim.Transitions {
	return sim.NewTransitions("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11")
}

// takes names the transition.
func takes(old, now uint32) error {
	type pair struct{ from, to uint32 }
	same := map[pair]string{
		{idle, queued}: "T1", {queued, parked}: "T2", {queued, signalled}: "T3", {parked, signalled}: "T4",
		{queued, kicked}: "T5", {parked, kicked}: "T6", {kicked, signalled}: "T7", {kicked, queued}: "T8",
	}
	next := map[pair]string{{signalled, idle}: "T9", {kicked, idle}: "T10", {queued, idle}: "T11"}
	names := same
	switch now &^ stateMask {
	case old &^ stateMask:
	case old&^stateMask + genUnit:
		names = next
	default:
		return errors.New("the generation jumps")
	}
	name, ok := names[pair{old & stateMask, now & stateMask}]
	if !ok {
		return fmt.Errorf("no transition from %#x to %#x", old, now)
	}
	return transitions.Took(name)
}

func programs() []sim.Program {
	forever, limited := wait(ReasonSemacquire, false), wait(ReasonSemacquire, true)
	locked := wait(ReasonMutexLock, true) // the portable twin sleeps on a mutex then
	return []sim.Program{
		program("park, unpark", list{forever, forever}, list{wake, wake}),
		program("park, refuse, unpark", list{forever, refuse, forever}, list{wake, wake}),
		program("park, kick", list{limited, limited, refuse}, list{kick, kick, wake, wake}),
		program("park on a mutex, kick", list{locked, locked}, list{kick, wake, kick, wake}),
		program("park, kick in vain", list{forever, limited}, list{wake, kick, kick, wake}),
		program("park, unpark, kick", list{limited, forever}, list{wake, wake}, list{kick, kick}),
		program("park on a mutex, unpark, kick", list{locked, forever}, list{wake, wake}, list{kick, kick}),
	}
}

// eachTwin calls f for the native twin and for the portable one.
func eachTwin(t *testing.T, f func(t *testing.T)) {
	defer func() { simPortable = false }()
	for _, portable := range []bool{false, true} {
		name := map[bool]string{false: "native", true: "portable"}[portable]
		t.Run(name, func(t *testing.T) {
			simPortable = portable
			f(t)
		})
	}
}

func TestModelParker(t *testing.T) {
	transitions = newTransitions()
	eachTwin(t, func(t *testing.T) {
		for _, p := range programs() {
			t.Run(p.Name, func(t *testing.T) {
				bound := 2
				if !testing.Short() {
					bound = 4
				}
				sim.Cover(t, p, sim.Options{Memory: sim.TSO, Strategy: sim.Exhaustive(bound)}, testing.Short())
			})
			if testing.Short() {
				continue
			}
			t.Run(p.Name+", more preemptions", func(t *testing.T) {
				sim.Run(t, p, sim.Options{Memory: sim.TSO, Strategy: sim.PCT(3, 1), Budget: 100_000})
			})
		}
	})
	t.Log(transitions)
}

// Every transition is taken in some schedule of some program.
func TestModelParker_TakesEveryTransition(t *testing.T) {
	eachTwin(t, func(t *testing.T) {
		transitions = newTransitions()
		for _, p := range programs() {
			if r := sim.Explore(p, sim.Options{Memory: sim.TSO, Strategy: sim.Exhaustive(1)}); r.Failure != nil {
				t.Errorf("%s\n%s", r, r.Failure.Detail())
			}
		}
		t.Log(transitions)
		for _, name := range transitions.Untaken() {
			t.Errorf("no program takes %s", name)
		}
	})
}

// A checker that has never found anything is not trusted: each fault that is
// seeded in this package is found on the program named here.
func TestMutants(t *testing.T) {
	defer func() { simPortable = false }()
	mutants := []struct {
		name, program string
		portable      bool
	}{
		{"rt: parks whatever came", "park, unpark", false},
		{"rt: sleeps without having parked", "park, unpark", true},
		{"rt: same generation after a signal", "park, unpark", false},
		{"rt: signal overwrites", "park, unpark", false},
		{"rt: kick of any ticket", "park, kick in vain", false},
		{"rt: kick after the signal", "park, kick in vain", true},
		{"rt: re-arm overwrites", "park, kick in vain", false},
	}
	var faults []sim.Fault
	all := programs()
	for _, m := range mutants {
		p := all[slices.IndexFunc(all, func(p sim.Program) bool { return p.Name == m.program })]
		setup := p.Setup
		p.Setup = func() {
			simPortable = m.portable
			setup()
		}
		faults = append(faults, sim.Fault{Mutant: m.name, Program: p})
	}
	sim.RunFaults(t, faults)
}
