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
func rwProgram(setup func(*RWMutex), scripts ...string) sim.Program {
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
	return program(fmt.Sprint("rwmutex ", scripts), func() {
		rw, h = new(RWMutex), hall{}
		sim.Name(&rw.w, "w")
		sim.Name(&rw.state, "state", "writer")
		if setup != nil {
			setup(rw)
		}
	}, step, func() error { return rwAtRest(rw) }, scripts)
}

// rwAtRest checks the word of a lock that nobody holds or waits for.
func rwAtRest(rw *RWMutex) error {
	if s := rw.state.Load(); s != 0 {
		return fmt.Errorf("state %#x at rest", s)
	}
	return nil
}

// program makes a program of scripts, each of which is a thread that does step
// for every letter.
func program(name string, setup func(), step func(rune), final func() error, scripts []string) sim.Program {
	p := sim.Program{
		Name:  name,
		Setup: func() { parking.ResetForSim(); setup() },
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

// exhaust explores the whole space within two preemptions.
func exhaust(t *testing.T, m mode, p sim.Program) {
	t.Helper()
	t.Run(p.Name+" "+m.name, func(t *testing.T) {
		r := sim.Run(t, m.on(p), sim.Options{Memory: m.memory, Budget: 5_000_000, Time: time.Minute})
		if !r.Exhausted {
			t.Errorf("not exhausted: %s", r)
		}
	})
}

// sample explores n schedules, half of them uniform and half of them by PCT; a
// tenth of a percent of them in short tests.
func sample(t *testing.T, m mode, p sim.Program, n int) {
	t.Helper()
	if testing.Short() {
		n /= 100
	}
	for _, s := range []sim.Strategy{sim.Uniform(1), sim.PCT(3, 1)} {
		t.Run(fmt.Sprint(p.Name, " ", m.name, " ", s), func(t *testing.T) {
			sim.Run(t, m.on(p), sim.Options{Strategy: s, Memory: m.memory, Budget: n / 2})
		})
	}
}

func TestModelRWMutex(t *testing.T) {
	defer backToReality()
	for _, scripts := range [][]string{{"rr", "ww"}, {"rw", "wr"}, {"ww", "ww"}, {"qr", "wt"}, {"er", "ww"}, {"rr", "dr"}, {"rr", "gg"}} {
		exhaust(t, modes[0], rwProgram(nil, scripts...))
	}
	for _, scripts := range [][]string{{"rr", "rr", "ww"}, {"re", "rw", "wd"}, {"r", "r", "g", "d"}, {"r", "rw", "w", "t"}} {
		sample(t, modes[0], rwProgram(nil, scripts...), 100_000)
	}
}
