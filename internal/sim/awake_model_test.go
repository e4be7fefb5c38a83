//go:build sim

package sim_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// awakeModel is the mutex with a bit A: a contender is awake, so that a contended unlock need not wake another. A may be
// lost at any time, but must not stay set without a holder.
type awakeModel struct{ mutexModel }

const (
	sigAwake = 8 // with sigWake or sigMore: the bit A comes with the signal
	sigKinds = sigAwake - 1
)

func (m *awakeModel) lock(a *actor, timed bool) bool {
	if m.state.CompareAndSwap(0, mL) {
		m.enter(a)
		return true
	}
	var (
		duty, mine, woken bool
		g                 uint32
	)
	for {
		a.at(1, bit(timed), bit(duty)|bit(mine)<<1|bit(woken)<<2, uint64(g))
		s := m.state.Load() // S1
		if s&mL == 0 {
			n := s | mL
			if duty {
				n |= mP
			}
			if mine {
				n &^= mA
			}
			if m.state.CompareAndSwap(s, n) {
				m.enter(a)
				return true
			}
			continue
		}
		if timed && sim.Choose(2) == 1 {
			m.goAway(a, duty, mine)
			return false
		}
		if s&mA == 0 && !mine && sim.Choose(2) == 1 { // spin
			mine = m.state.CompareAndSwap(s, s|mA)
			continue
		}
		if g = m.tag.Load(); g == 0 { // S2
			g = a.node
			if m.tag.CompareAndSwap(0, g) && !m.ordered {
				if !sim.Mutant("no membarrier") {
					sim.HeavyFence()
				}
				duty = m.bucket(g).count.Load() != 0 || duty
			}
			continue
		}
		a.at(2, bit(timed), bit(duty)|bit(mine)<<1|bit(woken)<<2, uint64(g))
		if !m.announce(&mine) { // S3
			continue
		}
		a.at(3, bit(timed), bit(duty)|bit(mine)<<1|bit(woken)<<2, uint64(g))
		b := m.bucket(g)
		b.count.Add(1) // S4
		b.mu.Lock()    // S5
		a.at(4, bit(timed), bit(duty)|bit(mine)<<1|bit(woken)<<2, uint64(g))
		if !m.validate(g) {
			a.at(5, bit(timed), bit(duty)|bit(mine)<<1|bit(woken)<<2, uint64(g))
			b.mu.Unlock()
			b.count.Add(^uint32(0))
			continue
		}
		b.push(&a.waiter, woken) // S6
		duty = false
		b.mu.Unlock()
		a.at(6, bit(timed), uint64(g))
		sig, gone := m.park(a, b, timed)
		if gone {
			return false
		}
		if sig == sigHandoff {
			m.enter(a)
			return true
		}
		duty = sig&sigKinds == sigMore && !sim.Mutant("no re-arm")
		mine = sig&sigAwake != 0
		woken = true
	}
}

// announce is S3: one CAS sets P and gives up A.
func (m *awakeModel) announce(mine *bool) bool {
	for {
		s := m.state.Load()
		if s&mL == 0 {
			return false
		}
		n := s | mP
		if *mine && !sim.Mutant("A5: holder of A parks") {
			n &^= mA
		}
		if s == n || m.state.CompareAndSwap(s, n) {
			*mine = false
			return true
		}
	}
}

func (m *awakeModel) park(a *actor, b *bucket, timed bool) (sig uint32, gone bool) {
	if !timed {
		return a.wait(), false
	}
	if sim.WaitWhileEqualFor32(&a.signal, sigNone, deadline) != sigNone {
		return a.wait(), false
	}
	b.mu.Lock()
	queued := b.remove(&a.waiter)
	b.mu.Unlock()
	if queued {
		return 0, true
	}
	if sig = a.wait(); sig == sigHandoff {
		return sig, false
	}
	m.goAway(a, sig&sigKinds == sigMore, sig&sigAwake != 0)
	return 0, true
}

// goAway is LEAVE of a contender that is awake.
func (m *awakeModel) goAway(a *actor, duty, mine bool) {
	a.at(7, bit(duty), bit(mine))
	for {
		s := m.state.Load()
		n := s
		if duty {
			n |= mP
		}
		if mine {
			n &^= mA
		}
		if sim.Mutant("A5: holder of A leaves with it") {
			n = s
		}
		if s != n && !m.state.CompareAndSwap(s, n) {
			continue
		}
		if n&mP != 0 && n&(mL|mA) == 0 && !sim.Mutant("A5: holder of A leaves and does not look") {
			m.rouse(a, 0)
		}
		return
	}
}

func (m *awakeModel) unlock(a *actor) {
	for {
		a.at(8)
		g := m.tag.Load() // U1
		if g == 0 {
			break
		}
		if c := m.policy(); c == 1 {
			if m.calm(g) {
				continue
			}
		} else if c == 2 && m.hand(g) {
			return
		}
		m.leave()
		if sim.Mutant("A1: contended unlock by exchange") {
			if old := m.state.Swap(0); old&mP != 0 && old&mA == 0 {
				m.wake(a, 22, g)
			}
			return
		}
		if old := m.state.Add(^uint32(mL - 1)); old&mP != 0 && old&mA == 0 { // C2
			m.rouse(a, g)
		}
		return
	}
	m.state.Load()
	m.leave()
	if m.ordered {
		m.state.Store(0)
	} else {
		sim.StorePlain32(&m.state, 0) // U3
	}
	if sim.Mutant("no second tag load") {
		return
	}
	if g := m.tag.Load(); g != 0 { // U4
		if !m.ordered && !sim.Mutant("race path: count without a fence") {
			sim.Fence()
		}
		if sim.Mutant("A4: race path does not wake while A is set") && m.state.Load()&mA != 0 {
			return
		}
		m.wake(a, 23, g) // U5
	}
}

// rouse is V1 to V4: wake one with the token A. before is the tag that the caller had read, which only a fault uses.
func (m *awakeModel) rouse(a *actor, before uint32) {
	for {
		a.at(30, uint64(before))
		s := m.state.Load() // V1
		if s&(mL|mA) != 0 || s&mP == 0 {
			return
		}
		if !m.state.CompareAndSwap(s, s&^mP|mA) {
			continue
		}
		a.at(31, uint64(before))
		g := before
		if !sim.Mutant("A2: tag read before the token") || g == 0 {
			g = m.tag.Load() // V2
		}
		if g != 0 && m.send(a, g) {
			return
		}
		a.at(32, uint64(before))
		m.state.And(^uint32(mA)) // V4
		if sim.Mutant("A3: no look after clearing A") {
			return
		}
	}
}

// send wakes the head of the bucket with A.
func (m *awakeModel) send(a *actor, g uint32) bool {
	b := m.bucket(g)
	if b.count.Load() == 0 {
		return false
	}
	b.mu.Lock()
	w := b.pop()
	more := len(b.queue) > 0
	b.mu.Unlock()
	if w == nil {
		return false
	}
	if more {
		w.signal.Store(sigMore | sigAwake)
	} else {
		w.signal.Store(sigWake | sigAwake)
	}
	return true
}

func awakeProgram(r mutexRules, text string) sim.Program {
	var m *awakeModel
	p := letters("mutex with A", text, func(actors []*actor) {
		m = &awakeModel{}
		m.mutexRules = r
		m.name(actors)
	}, func(a *actor, letter byte) {
		switch letter {
		case 'L', 'D':
			if !m.lock(a, letter == 'D') {
				return
			}
		case 'T':
			if s := m.state.Load(); s&mL != 0 || !m.state.CompareAndSwap(s, s|mL) {
				return
			}
			m.enter(a)
		}
		m.unlock(a)
	})
	p.Final = func() error { return m.final() }
	p.State = func(h *sim.Hash) { m.hash(h) }
	return p
}

func TestAwakeBit_Passes(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		text  string
		rules mutexRules
		mem   sim.Memory
		long  bool
	}{
		{"LL,LL", fullMutex, sim.TSO, false},
		{"DL,LL", fullMutex, sim.TSO, false},
		{"TL,LL", fullMutex, sim.TSO, false},
		{"L,L,L", mutexRules{nodes: 1}, sim.TSO, false},
		{"D,L,L", mutexRules{nodes: 1}, sim.TSO, false},
		{"L,L,L", mutexRules{nodes: 1, quiet: true}, sim.TSO, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("%s/%+v", c.text, c.rules), func(t *testing.T) {
			t.Parallel()
			mustPass(t, awakeProgram(c.rules, c.text), whole(c.mem))
		})
	}
}

func TestAwakeBit_Faults(t *testing.T) {
	skipUnderRace(t)
	one := mutexRules{nodes: 1}
	two := mutexRules{nodes: 2, quiet: true}
	for _, f := range []struct {
		name  string
		text  string
		rules mutexRules
		steps int
	}{
		{"A1: contended unlock by exchange", "L,L,L", one, 25},
		{"A2: tag read before the token", "LL,LL,LL", two, 53},
		{"A3: no look after clearing A", "L,L,L", one, 28},
		{"A4: race path does not wake while A is set", "L,L,L,L", one, 33},
		{"A5: holder of A leaves and does not look", "D,L,L", one, 27},
		{"A5: holder of A leaves with it", "D,L,L", one, 18},
		{"A5: holder of A parks", "L,L", one, 18},
		{"no re-arm", "L,L,L", one, 24},
		{"no membarrier", "L,L", one, 17},
		{"no second tag load", "L,L", one, 18},
		{"tag not validated", "L,L", two, 22},
		{"quiet without the bucket lock", "L,L", two, 22},
		{"race path: count without a fence", "L,L", one, 19},
	} {
		t.Run(f.name, func(t *testing.T) {
			o := sim.Options{Memory: sim.TSO, Reduce: sim.ByState, Strategy: sim.Exhaustive(6)}
			if f.text == "L,L,L,L" { // too many threads to search in order, but easy to meet
				o.Strategy = sim.Uniform(1)
			}
			fault{name: f.name, steps: f.steps}.check(t, awakeProgram(f.rules, f.text), o)
		})
	}
}
