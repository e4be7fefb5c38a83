//go:build sim && !sync2_std

package sync2

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

// Programs of the model checker: see CONTRIBUTING.md on how to read a trace.

// section is the oracle of exclusion: plain memory that two sections at once
// would see in each other's hands.
type section struct{ inside, entered int }

func (s *section) enter() {
	s.inside++
	sim.Assert(s.inside == 1, "two owners")
	sim.Step("in the section")
	s.entered++
	s.inside--
}

// mutexProgram runs the given scripts on one mutex: L lock and unlock, T TryLock,
// D lock with a deadline that may pass at any point.
func mutexProgram(scripts ...string) sim.Program {
	var m *Mutex
	var s section
	var want int
	run := func(script string) func() {
		return func() {
			for _, op := range script {
				switch op {
				case 'L':
					m.Lock()
				case 'T':
					if !m.TryLock() {
						want--
						continue
					}
				case 'D':
					if !m.TryLockFor(time.Millisecond) {
						want--
						continue
					}
				}
				s.enter()
				m.Unlock()
			}
		}
	}
	p := sim.Program{
		Name: fmt.Sprint("mutex ", scripts),
		Setup: func() {
			parking.ResetForSim()
			m, s, want = new(Mutex), section{}, 0
			for _, script := range scripts {
				want += len(script)
			}
			nameMutex(m, "")
		},
		Final: func() error {
			if st := m.state.Load(); st&^mutexParked != 0 {
				return fmt.Errorf("state %#x at rest", st)
			}
			if s.entered != want {
				return errors.New("an update was lost")
			}
			return nil
		},
	}
	for _, script := range scripts {
		p.Threads = append(p.Threads, run(script))
	}
	return p
}

// nameMutex names the words of m: state and tag, with a prefix.
func nameMutex(m *Mutex, prefix string) {
	sim.Name(&m.state, prefix+"state", "locked", "parked")
	sim.Name(&m.tag, prefix+"tag")
}

// A mode is one of the ways to unlock, with the memory it is for.
type mode struct {
	name   string
	unlock int
	memory sim.Memory
	calm   uint32 // see calmMost
}

var modes = []mode{
	{"symmetric", symmetric, sim.TSO, 0},
	{"fence", plainAndFence, sim.TSO, 0},
	{"ordered", plainOnly, sim.SC, 0},
}

// patientMode counts an unlock without a waiter before it makes a mutex quiet.
var patientMode = mode{"fence, patient", plainAndFence, sim.TSO, tagCalm}

func (m mode) on(p sim.Program) sim.Program {
	setup := p.Setup
	p.Name += " " + m.name
	p.Setup = func() {
		simUnlock, calmMost = m.unlock, m.calm
		setup()
	}
	return p
}

// backToReality leaves to other tests a table without the waiters of schedules
// that were cut short, whose records nobody keeps alive.
func backToReality() {
	simUnlock, calmMost, inWord = symmetric, 0, false
	parking.ResetForSim()
}

// twoNodes are the places of up to three threads, so that tags differ.
var twoNodes = sim.Options{Nodes: []int{0, 1, 0}}

func TestModelMutex(t *testing.T) {
	defer backToReality()
	all := func(o sim.Options, programs ...[]string) {
		for _, scripts := range programs {
			for _, m := range modes {
				cover(t, m, mutexProgram(scripts...), o)
			}
		}
	}
	whole := twoNodes
	whole.Strategy = sim.Exhaustive(2)
	all(whole, []string{"L", "L"}, []string{"LL", "LL"}, []string{"TT", "LL"}, []string{"D", "L"})
	if testing.Short() {
		return
	}
	all(whole, []string{"DL", "LL"}, []string{"LD", "LL"}, []string{"L", "L", "L"})
	cover(t, modes[0], mutexProgram("DD", "LL"), whole)
	cover(t, patientMode, mutexProgram("LL", "LL"), whole)
	cover(t, patientMode, mutexProgram("LL", "LL", "L"), twoNodes)
	all(twoNodes, []string{"LL", "LL", "L"}, []string{"DL", "L", "L"}, []string{"D", "D", "L", "L"}, []string{"LL", "L", "L", "L"})
}

// The faults that are seeded in mutex.go, and what finds each.
var (
	fenceMode, orderedMode = modes[1], modes[2]
	three                  = mutexProgram("L", "L", "L")

	mutexMutants = []seeded{
		{"mutex: no fence", fenceMode, mutexProgram("LL", "LL"), sim.Exhaustive(2)},
		{"mutex: no second look at tag", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: tag not validated", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: state not validated", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: quiet without a look at the queue", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: race path without a fence", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: setter does not look", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: look before the fence", fenceMode, three, sim.Exhaustive(2)},
		{"mutex: duty not paid", orderedMode, three, sim.Exhaustive(2)},
		{"mutex: awake does not look", orderedMode, three, sim.Exhaustive(2)},
		{"mutex: awake stays", orderedMode, three, sim.Exhaustive(2)},
		{"mutex: leaver drops its duty", modes[0], mutexProgram("D", "LL", "L"), sim.Exhaustive(3)},
		{"mutex: handed over to nobody", modes[0], mutexProgram("L", "L"), sim.Exhaustive(2)},
		{"mutex: any tag validated", fenceMode, mutexProgram("LL", "L", "L"), sim.Uniform(1)},
	}
)
