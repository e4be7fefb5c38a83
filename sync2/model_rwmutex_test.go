//go:build sim && !sync2_std

package sync2

import (
	"fmt"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

// hall is the oracle of an RWMutex: who is inside. A reader leaves a step open
// in which a writer could come in.
type hall struct{ readers, writers int }

func (h *hall) read() {
	h.readers++
	sim.Assert(h.writers == 0, "a reader beside a writer")
	sim.Step("reading")
	sim.Assert(h.writers == 0, "a writer beside a reader")
	h.readers--
}

func (h *hall) write() {
	h.writers++
	sim.Assert(h.writers == 1 && h.readers == 0, "a writer beside somebody")
	sim.Step("writing")
	sim.Assert(h.writers == 1 && h.readers == 0, "somebody beside a writer")
	h.writers--
}

// rwProgram runs the given scripts on one RWMutex: r read, q TryRLock, e read
// with a deadline; w write, t TryLock, d write with a deadline, g write,
// downgrade and read on.
func rwProgram(as string, scripts ...string) sim.Program {
	var rw *RWMutex
	var h hall
	step := func(op rune) {
		switch op {
		case 'r', 'q', 'e':
			if op == 'r' {
				rw.RLock()
			} else if op == 'q' && !rw.TryRLock() || op == 'e' && !rw.TryRLockFor(time.Millisecond) {
				return
			}
			h.read()
			rw.RUnlock()
		case 'w', 't', 'd':
			if op == 'w' {
				rw.Lock()
			} else if op == 't' && !rw.TryLock() || op == 'd' && !rw.TryLockFor(time.Millisecond) {
				return
			}
			h.write()
			rw.Unlock()
		case 'g':
			rw.Lock()
			h.write()
			rw.Downgrade()
			h.read()
			rw.RUnlock()
		}
	}
	return program(fmt.Sprint("rwmutex ", as, " ", scripts), func() {
		rw, h = new(RWMutex), hall{}
		nameRWMutex(rw)
		rwSetups[as](rw)
	}, step, func() error { return rwAtRest(rw) }, scripts)
}

func nameRWMutex(rw *RWMutex) {
	nameMutex(&rw.w, "w.")
	sim.Name(&rw.state, "rw", "writer", "counted")
	sim.Name(&rw.clashes, "clashes")
}

// rwSetups are ways to begin: with readers counted in the word, for good where
// there are few processors, or from the start by P; counters are written by atomic
// adds or, with a heavy fence for the writer, by plain stores.
var rwSetups = map[string]func(*RWMutex){
	"in the word":    func(*RWMutex) { inWord = true },
	"adds":           func(*RWMutex) {},
	"counted, adds":  func(rw *RWMutex) { count(rw, 2) },
	"one P counted":  func(rw *RWMutex) { count(rw, 1) }, // readers on others use the word
	"plain":          func(*RWMutex) { simCounters = plainAndFence },
	"counted, plain": func(rw *RWMutex) { simCounters = plainAndFence; count(rw, 2) },
	"always counted": func(rw *RWMutex) { simCounters, simFixed = plainAndFence, true; count(rw, 2) },
}

// count switches counters for n Ps on.
func count(rw *RWMutex, n int) {
	c := newCounters(n)
	rw.counters.Store(c)
	rw.state.Store(rwCounted)
	for p := range c.each {
		sim.Name(&c.each[p].n, fmt.Sprint("P", p))
	}
	sim.Name(&c.goal, "goal")
	sim.Name(&c.late, "late")
}

// rwAtRest checks I2 and I6 on a lock that nobody holds or waits for.
func rwAtRest(rw *RWMutex) error {
	s, sum := rw.state.Load(), int64(0)
	if c := rw.counters.Load(); c != nil {
		sum = c.sum()
	}
	if s&rwWriter != 0 || readers(s)+sum != 0 || s&rwCounted == 0 && sum != 0 {
		return fmt.Errorf("state %#x, sum %d at rest", s, sum)
	}
	return nil
}

// program makes a program of scripts, each of which is a thread that does step
// for every letter.
func program(name string, setup func(), step func(rune), final func() error, scripts []string) sim.Program {
	p := sim.Program{
		Name: name,
		Setup: func() {
			parking.ResetForSim()
			simCounters, simFixed, inWord = symmetric, false, false
			setup()
		},
		Final: final,
	}
	for _, script := range scripts {
		p.Threads = append(p.Threads, func() {
			for _, op := range script {
				step(op)
			}
		})
	}
	return p
}

// cover explores p as far as sim.Cover asks for; what is too large to be explored
// whole also at random, which finds some faults sooner.
func cover(t *testing.T, m mode, p sim.Program, o sim.Options) {
	t.Helper()
	o.Memory = m.memory
	t.Run(p.Name+" "+m.name, func(t *testing.T) {
		sim.Cover(t, m.on(p), o, testing.Short())
	})
	if len(p.Threads) == 2 || o.Strategy != nil || testing.Short() {
		return
	}
	t.Run(p.Name+" "+m.name+" uniform", func(t *testing.T) {
		o.Strategy, o.Budget = sim.Uniform(1), 100_000
		sim.Run(t, m.on(p), o)
	})
}

// twoPs are Ps for readers that are counted by P: fewer than threads, so that some share one.
var twoPs = sim.Options{Procs: 2}

func TestModelRWMutex(t *testing.T) {
	defer backToReality()
	for _, as := range []string{"in the word", "adds", "plain", "counted, adds"} {
		for _, scripts := range [][]string{{"rr", "ww"}, {"rw", "wr"}, {"qr", "wt"}, {"rr", "gg"}} {
			cover(t, modes[0], rwProgram(as, scripts...), twoPs)
		}
	}
	for _, scripts := range [][]string{{"er", "ww"}, {"rr", "dr"}} {
		cover(t, modes[0], rwProgram("in the word", scripts...), twoPs)
		cover(t, modes[0], rwProgram("adds", scripts...), twoPs)
		if !testing.Short() {
			cover(t, modes[0], rwProgram("counted, adds", scripts...), twoPs)
		}
	}
	cover(t, modes[0], rwProgram("always counted", "rr", "ww"), twoPs)
	cover(t, modes[0], rwProgram("one P counted", "rr", "ww"), twoPs)
	for _, scripts := range [][]string{{"rr", "rr", "ww"}, {"re", "rw", "wd"}, {"r", "r", "g", "d"}, {"r", "rw", "w", "t"}} {
		for _, as := range []string{"in the word", "adds", "counted, adds", "counted, plain"} {
			cover(t, modes[0], rwProgram(as, scripts...), twoPs)
		}
	}
}

// The faults that are seeded in rwmutex.go and counters.go.
var rwMutants = []seeded{
	{"rwmutex: no fence", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: writer ignores the counters", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: taken back without a word", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(3)},
	{"rwmutex: taken back on another P", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(3)},
	{"rwmutex: taken back by the first look", modes[0], rwProgram("counted, adds", "r", "r", "ww"), sim.Uniform(1)},
	{"rwmutex: RUnlock does not look again", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: late departures are not counted", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: late departures looked at after the sum", modes[0], rwProgram("always counted", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: taking back in the word is no departure", modes[0], rwProgram("one P counted", "r", "r", "w"), sim.Exhaustive(3)},
	{"rwmutex: RUnlock in the word is no departure", modes[0], rwProgram("in the word", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: writer sleeps without a look at count", modes[0], rwProgram("adds", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: counters switched on under a writer", modes[0], rwProgram("adds", "rr", "r", "ww"), sim.Uniform(1)},
	{"rwmutex: counters switched off without settling", modes[0], rwProgram("counted, adds", "r", "w"), sim.Exhaustive(2)},
	{"rwmutex: switched off by a writer that gave up", modes[0], rwProgram("counted, adds", "r", "dw"), sim.Exhaustive(2)},
}
