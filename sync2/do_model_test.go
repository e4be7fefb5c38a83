//go:build sim && !sync2_std

package sync2

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

// doProgram runs the given scripts on two mutexes that share a slot: D is Do, P a Do whose function panics, E one whose
// function calls runtime.Goexit, which ends the script, W one that gives the mutex up and takes it back, L lock and
// unlock; d is Do on the second mutex.
func doProgram(scripts ...string) sim.Program {
	var m [2]*Mutex
	var s [2]section
	var runs map[string]int // of each function
	var inARow [2]int       // functions since m was last free
	enter := func(which int, name string) {
		runs[name]++
		s[which].enter()
	}
	do := func(op rune, name string) {
		which := 0
		if op == 'd' {
			which = 1
		}
		defer func() {
			if v := recover(); v != nil {
				sim.Assert(v == name, fmt.Sprintf("%s got the panic %v", name, v))
			} else {
				sim.Assert(op != 'P', "no panic from "+name)
			}
			sim.Assert(runs[name] == 1, fmt.Sprintf("%s has run %d times", name, runs[name]))
		}()
		m[which].Do(func() {
			inARow[which]++
			sim.Assert(inARow[which] <= 1+askCells, "a batch without end")
			enter(which, name)
			switch op {
			case 'P':
				panic(name)
			case 'E':
				runtime.Goexit()
			case 'W':
				m[which].Unlock()
				m[which].Lock()
				s[which].enter()
			}
		})
		sim.Assert(op != 'E', name+" goes on after Goexit")
	}
	run := func(thread int, script string) func() {
		return func() {
			for i, op := range script {
				name := fmt.Sprintf("%c%d.%d", op, thread, i)
				if op == 'L' {
					m[0].Lock()
					enter(0, name)
					m[0].Unlock()
					continue
				}
				do(op, name)
			}
		}
	}
	p := sim.Program{
		Name: fmt.Sprint("do ", scripts),
		Setup: func() {
			parking.ResetForSim()
			askSlots = [1]askSlot{}
			m, s, runs = [2]*Mutex{new(Mutex), new(Mutex)}, [2]section{}, map[string]int{}
			inARow = [2]int{}
			nameMutex(m[0], "")
			nameMutex(m[1], "other.")
			sim.Name(&askSlots[0], "slot")
		},
		Watch: func(w sim.Write) error {
			for i := range m {
				if uintptr(w.At) == parking.AddrOf(&m[i].state) && w.Old&mutexLocked == 0 {
					inARow[i] = 0
				}
			}
			return nil
		},
		Final: func() error {
			for i := range m {
				if st := m[i].state.Load(); st&^mutexParked != 0 {
					return fmt.Errorf("state %#x at rest", st)
				}
			}
			if n := askSlots[0].waiting.Load(); n != 0 {
				return fmt.Errorf("%d requests at rest", n)
			}
			for i := range askSlots[0].cells {
				if askSlots[0].cells[i].Load() != nil {
					return fmt.Errorf("a request in cell %d at rest", i)
				}
			}
			for thread, script := range scripts {
				for i, op := range script {
					if name := fmt.Sprintf("%c%d.%d", op, thread, i); runs[name] != 1 {
						return fmt.Errorf("%s has run %d times", name, runs[name])
					}
				}
			}
			return nil
		},
	}
	for i, script := range scripts {
		p.Threads = append(p.Threads, run(i, script))
	}
	return p
}

func TestModelDo(t *testing.T) {
	defer backToReality()
	programs := [][]string{{"D", "D"}, {"P", "D"}, {"E", "D"}, {"W", "D"}, {"D", "L"}, {"D", "D", "L"}, {"d", "D", "D"}, {"D", "E", "P"}}
	if !testing.Short() {
		programs = append(programs, []string{"DD", "D"})
	}
	for _, scripts := range programs {
		cover(t, fenceMode, doProgram(scripts...), sim.Options{})
	}
}

// A record goes from goroutine to goroutine through the pool, so a batch that has read a cell may claim the record
// when it is a request of somebody else, who has not got a cell for it yet, and may not get the one that he tries.
func TestModelDo_ClaimedByALateLook(t *testing.T) {
	defer backToReality()
	var m *Mutex
	var late *request // which the batch has found in a cell before its owner withdrew it
	runs := 0
	f := func() { runs++ }
	p := sim.Program{
		Name: "do, a late look",
		Setup: func() {
			parking.ResetForSim()
			askSlots = [1]askSlot{}
			m, late, runs = new(Mutex), new(request), 0
			simSpare = late
			m.Lock() // by the batch
		},
		Threads: []func(){
			func() {
				if ran, locked := m.ask(f); !ran {
					sim.Assert(!locked, "locked by two")
					f()
				}
			},
			func() {
				if late.claim(m) {
					late.run()
				}
			},
			func() { askSlots[0].cells[firstCell()].CompareAndSwap(nil, new(request)) }, // of another mutex
		},
		Final: func() error {
			if runs != 1 {
				return fmt.Errorf("the function has run %d times", runs)
			}
			return nil
		},
	}
	cover(t, fenceMode, p, sim.Options{Strategy: sim.Exhaustive(3)})
}

// The faults that are seeded in do.go.
var doMutants = []seeded{
	{"do: claimed without a look", fenceMode, doProgram("D", "D"), sim.Uniform(1)},
	{"do: withdrawn without a look", fenceMode, doProgram("D", "D"), sim.Uniform(1)},
	{"do: locked and still asking", fenceMode, doProgram("D", "D", "D"), sim.Uniform(1)},
	{"do: request for another mutex", fenceMode, doProgram("d", "D", "D"), sim.Uniform(1)},
	{"do: unlocked too early", fenceMode, doProgram("D", "D", "L"), sim.Uniform(1)},
	{"do: panic stays here", fenceMode, doProgram("D", "P"), sim.Uniform(1)},
	{"do: batch ends with Goexit", fenceMode, doProgram("D", "E"), sim.Uniform(1)},
	{"do: owner is left asleep", fenceMode, doProgram("D", "D"), sim.Exhaustive(2)},
	{"do: owner sleeps without a look", fenceMode, doProgram("D", "W"), sim.Uniform(1)},
	{"do: batch without end", fenceMode, doProgram("D", "DD", "DD"), sim.Uniform(1)},
}
