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
			sim.Name(&m.state, "state", "locked", "parked", "awake")
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

// A mode is one of the ways to unlock, with the memory it is for.
type mode struct {
	name   string
	unlock int
	memory sim.Memory
}

var modes = []mode{
	{"symmetric", symmetric, sim.TSO},
	{"fence", plainAndFence, sim.TSO},
	{"ordered", plainOnly, sim.SC},
}

func (m mode) on(p sim.Program) sim.Program {
	setup := p.Setup
	p.Name += " " + m.name
	p.Setup = func() {
		simUnlock = m.unlock
		setup()
	}
	return p
}

func TestModelMutex(t *testing.T) {
	defer func() { simUnlock = symmetric }()
	for _, scripts := range [][]string{{"L", "L"}, {"LL", "LL"}, {"TT", "LL"}, {"DD", "LL"}, {"L", "L", "L"}} {
		for _, m := range modes {
			t.Run(fmt.Sprint(m.name, scripts), func(t *testing.T) {
				sim.Run(t, m.on(mutexProgram(scripts...)), sim.Options{
					Memory: m.memory, Nodes: []int{0, 1, 0}, Time: 60 * time.Second, Budget: 3_000_000})
			})
		}
	}
}

func TestMutantsX(t *testing.T) {
	defer func() { simUnlock = symmetric }()
	for _, name := range []string{
		"mutex: no fence", "mutex: no second look at tag", "mutex: tag not validated", "mutex: state not validated", "mutex: any tag validated",
		"mutex: woken waiter does not re-arm", "mutex: quiet without a look at the queue", "mutex: setter does not look", "mutex: look before the fence",
		"mutex: race path without a fence", "mutex: leaver drops its duty", "mutex: handoff does not re-arm", "mutex: no second look after T8", "mutex: state validated before tag",
	} {
		killed := ""
		for _, m := range modes[1:] {
			for _, scripts := range [][]string{{"L", "L"}, {"LL", "LL"}, {"L", "L", "L"}, {"D", "L", "L"}, {"LL", "LL", "L"}} {
				func() {
					defer func() {
						if e := recover(); e != nil {
							_ = e
						}
					}()
					r := sim.Explore(m.on(mutexProgram(scripts...)), sim.Options{
						Memory: m.memory, Nodes: []int{0, 1, 0}, Time: 20 * time.Second, Budget: 3_000_000, Mutant: name})
					if r.Failure != nil && killed == "" {
						killed = r.String()
					}
				}()
				if killed != "" {
					break
				}
			}
			if killed != "" {
				break
			}
		}
		if killed == "" {
			killed = "SURVIVED"
		}
		fmt.Printf("%s: %s\n", name, killed)
	}
}
