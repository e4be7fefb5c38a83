//go:build sim

package sim_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// The mutex of two words, quiet unlock, "the setter looks".
const (
	mL = 1 << iota // locked
	mP             // waiters may be queued
	mA             // a contender is awake (see awake_model_test.go)
)

type mutexRules struct {
	nodes     int
	quiet     bool // the owner may return the tag to 0
	handoff   bool // the owner may hand the lock to the head
	shortcut  bool // who is to wake may mark P of a locked word instead
	symmetric bool // no heavy fence in this process: unlock by exchange
	ordered   bool // arm64, or SC: the store is ordered before the load; no fence and no look
	invariant bool
}

type mutexModel struct {
	mutexRules
	state, tag sim.Uint32
	buckets    [2]bucket
	inside     int

	// How many are on their way to wake somebody, for invariant I1.
	releasing, duties, mores, looking int
}

func (m *mutexModel) name(actors []*actor) {
	sim.Name(&m.state, "state", "L", "P", "A")
	sim.Name(&m.tag, "tag")
	sim.Name(&m.buckets, "bucket")
	for i, a := range actors {
		a.node = uint32(i%m.nodes) + 1
	}
}

func (m *mutexModel) bucket(tag uint32) *bucket { return &m.buckets[tag-1] }

func (m *mutexModel) enter(a *actor) {
	if m.inside++; m.inside != 1 {
		sim.Failf("two owners")
	}
}

func (m *mutexModel) leave() { m.inside-- }

func (m *mutexModel) lock(a *actor, timed bool) bool {
	if m.state.CompareAndSwap(0, mL) { // L1
		m.enter(a)
		return true
	}
	return m.lockSlow(a, timed, false, false)
}

func (m *mutexModel) tryLock(a *actor) bool {
	if m.state.CompareAndSwap(0, mL) {
		m.enter(a)
		return true
	}
	return false
}

// lockSlow is the slow path, for a waiter that was woken too: duty says whether it has to see to it that others are.
func (m *mutexModel) lockSlow(a *actor, timed, duty, woken bool) bool {
	var g uint32
	take := func(d bool) {
		if d != duty {
			duty = d
			m.duties += int(bit(d)) - int(bit(!d))
		}
	}
	for {
		a.at(1, bit(timed), bit(duty), bit(woken), uint64(g))
		s := m.state.Load() // S1
		if s&mL == 0 {
			n := s | mL
			if duty {
				n |= mP
			}
			if m.state.CompareAndSwap(s, n) {
				take(false)
				m.enter(a)
				return true
			}
			continue
		}
		if timed && sim.Choose(2) == 1 {
			if duty && !sim.Mutant("leaver drops its duty") {
				m.wake(a, 20, g)
			}
			take(false)
			return false
		}
		if g = m.tag.Load(); g == 0 { // S2
			g = a.node
			m.looking++
			if !m.tag.CompareAndSwap(0, g) {
				m.looking--
				continue
			}
			if m.symmetric || m.ordered {
				m.looking--
				continue
			}
			if timed && sim.Mutant("timed setter leaves before fence and look") && sim.Choose(2) == 1 {
				m.looking--
				return false
			}
			early := sim.Mutant("look before the fence") && m.bucket(g).count.Load() != 0
			if !sim.Mutant("no membarrier") {
				sim.HeavyFence()
			}
			if early || m.looks() && m.bucket(g).count.Load() != 0 {
				take(true)
			}
			m.looking--
			continue
		}
		if sim.Mutant("each waiter fences instead of the look") {
			sim.HeavyFence()
		}
		if !m.announce(a, timed, duty, woken, g) { // S3
			continue
		}
		a.at(11, bit(timed), bit(duty), bit(woken), uint64(g))
		b := m.bucket(g)
		late := sim.Mutant("count by plain store")
		if !late {
			b.count.Add(1) // S4
		}
		a.at(12, bit(timed), bit(duty), bit(woken), uint64(g))
		b.mu.Lock() // S5
		a.at(13, bit(timed), bit(duty), bit(woken), uint64(g))
		if !m.validate(g) {
			a.at(14, bit(timed), bit(duty), bit(woken), uint64(g))
			b.mu.Unlock()
			if !late {
				b.count.Add(^uint32(0))
			}
			continue
		}
		if late {
			sim.StorePlain32(&b.count, sim.LoadPlain32(&b.count)+1)
		}
		a.at(15, bit(timed), bit(duty), bit(woken), uint64(g))
		b.push(&a.waiter, woken) // S6
		take(false)
		b.mu.Unlock()
		a.at(2, bit(timed), uint64(g))
		sig, gone := m.park(a, b, timed)
		if gone {
			return false
		}
		if sig == sigHandoff { // S7
			if sim.Mutant("handoff clears P") {
				m.state.And(^uint32(mP))
			}
			m.enter(a)
			return true
		}
		more := sig == sigMore
		if more {
			take(true)
			m.mores--
		}
		if sig == sigMore && sim.Mutant("no re-arm") {
			take(false)
		}
		woken = true
	}
}

func (m *mutexModel) looks() bool {
	return !sim.Mutant("nobody looks") && !sim.Mutant("look before the fence") && !sim.Mutant("each waiter fences instead of the look")
}

// announce is S3: P is set, or the word is free.
func (m *mutexModel) announce(a *actor, timed, duty, woken bool, g uint32) bool {
	for {
		a.at(10, bit(timed), bit(duty), bit(woken), uint64(g))
		s := m.state.Load()
		if s&mL == 0 {
			return false
		}
		if s&mP != 0 || m.state.CompareAndSwap(s, s|mP) {
			return true
		}
	}
}

// validate is the look under the bucket lock: tag first, state last.
func (m *mutexModel) validate(g uint32) bool {
	tagged := func() bool {
		if sim.Mutant("tag not validated") {
			return true
		}
		t := m.tag.Load()
		return t == g || t != 0 && sim.Mutant("only tag != 0 validated")
	}
	stated := func() bool {
		return sim.Mutant("state not validated") || m.state.Load()&(mL|mP) == mL|mP
	}
	if sim.Mutant("state validated before tag") {
		return stated() && tagged()
	}
	return tagged() && stated()
}

// park waits for a signal or, with a deadline, leaves; gone: it left.
func (m *mutexModel) park(a *actor, b *bucket, timed bool) (sig uint32, gone bool) {
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
	switch sig := a.wait(); sig {
	case sigHandoff:
		return sig, false
	case sigMore:
		if !sim.Mutant("leaver drops its duty") {
			m.wake(a, 21, m.tag.Load())
		}
		m.mores--
	}
	return 0, true
}

func (m *mutexModel) unlock(a *actor) {
	m.releasing++
	defer func() { m.releasing-- }()
	if m.symmetric {
		m.unlockSymmetric(a)
		return
	}
	for {
		a.at(3)
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
		var old uint32
		if sim.Mutant("contended unlock by load and plain store") {
			old = m.state.Load()
			sim.StorePlain32(&m.state, 0)
		} else {
			old = m.state.Swap(0) // C2
		}
		if old&mP != 0 {
			m.wake(a, 22, g) // C3
		}
		return
	}
	m.state.Load() // U2
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
		a.at(4, uint64(g))
		if !m.ordered && !sim.Mutant("race path: count without a fence") {
			sim.Fence() // U5
		}
		m.wake(a, 23, g)
	}
}

func (m *mutexModel) unlockSymmetric(a *actor) {
	a.at(5)
	g := uint32(0)
	if sim.Mutant("symmetric: tag loaded before the exchange") {
		g = m.tag.Load()
	}
	switch c := m.policy(); {
	case c == 0:
	case g == 0:
		if g = m.tag.Load(); g == 0 {
			break
		}
		if c == 1 {
			m.calm(g)
		} else if m.hand(g) {
			return
		}
	}
	m.leave()
	if m.state.Swap(0)&mP == 0 {
		return
	}
	if !sim.Mutant("symmetric: tag loaded before the exchange") {
		g = m.tag.Load()
	}
	if g != 0 {
		m.wake(a, 24, g)
	}
}

// policy decides what an owner that sees the tag does besides: 1: return to quiet; 2: hand off.
func (m *mutexModel) policy() int {
	switch {
	case m.quiet && m.handoff:
		return sim.Choose(3)
	case m.quiet:
		return sim.Choose(2)
	case m.handoff:
		return 2 * sim.Choose(2)
	}
	return 0
}

// calm returns the tag to 0 if nobody is queued.
func (m *mutexModel) calm(g uint32) bool {
	b := m.bucket(g)
	if sim.Mutant("quiet without the bucket lock") {
		if b.count.Load() != 0 {
			return false
		}
		m.tag.Store(0)
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 && !sim.Mutant("quiet without a look at the queue") {
		return false
	}
	m.tag.Store(0)
	return true
}

// hand gives the lock to the head of the queue.
func (m *mutexModel) hand(g uint32) bool {
	b := m.bucket(g)
	b.mu.Lock()
	w := b.pop()
	b.mu.Unlock()
	if w == nil {
		return false
	}
	m.leave()
	w.signal.Store(sigHandoff)
	return true
}

// wake gets rid of one duty to wake.
func (m *mutexModel) wake(a *actor, pc int, g uint32) {
	a.at(pc, uint64(g))
	if m.shortcut {
		if s := m.state.Load(); s&mL != 0 && m.state.CompareAndSwap(s, s|mP) { // W1
			return
		}
	}
	b := m.bucket(g)
	if b.count.Load() == 0 { // W2
		return
	}
	b.mu.Lock() // W3
	w := b.pop()
	more := len(b.queue) > 0
	b.mu.Unlock()
	if w == nil {
		return
	}
	if more {
		m.mores++
		w.signal.Store(sigMore)
	} else {
		w.signal.Store(sigWake)
	}
}

// check is I1 and I2.
func (m *mutexModel) check() error {
	for i := range m.buckets {
		if len(m.buckets[i].queue) == 0 {
			continue
		}
		if tag := m.tag.Load(); tag != uint32(i+1) {
			return fmt.Errorf("I2: somebody is queued in bucket %d, the tag is %d", i+1, tag)
		}
		if m.state.Load()&(mL|mP) != mL|mP && m.releasing+m.duties+m.mores+m.looking == 0 {
			return fmt.Errorf("I1: somebody is queued, the state is %d, and nobody is on his way to wake", m.state.Load())
		}
	}
	return nil
}

func (m *mutexModel) final() error {
	if s := m.state.Load(); s != 0 {
		return fmt.Errorf("state %d at rest", s)
	}
	for i := range m.buckets {
		if b := &m.buckets[i]; len(b.queue) != 0 || b.count.Load() != 0 {
			return fmt.Errorf("bucket %d at rest: %d queued, count %d", i+1, len(b.queue), b.count.Load())
		}
	}
	return nil
}

func (m *mutexModel) hash(h *sim.Hash) {
	m.buckets[0].hash(h)
	m.buckets[1].hash(h)
}

// mutexProgram: L Lock/Unlock, D the same with a deadline, T TryLock.
func mutexProgram(r mutexRules, text string) sim.Program {
	var m *mutexModel
	p := letters("mutex", text, func(actors []*actor) {
		m = &mutexModel{mutexRules: r}
		m.name(actors)
	}, func(a *actor, letter byte) {
		switch letter {
		case 'L', 'D':
			if !m.lock(a, letter == 'D') {
				return
			}
		case 'T':
			if !m.tryLock(a) {
				return
			}
		}
		m.unlock(a)
	})
	if r.invariant {
		p.Check = func() error { return m.check() }
	}
	p.Final = func() error { return m.final() }
	p.State = func(h *sim.Hash) { m.hash(h) }
	p.Outcome = func() string { return fmt.Sprint(m.state.Load(), m.tag.Load()) }
	return p
}

var fullMutex = mutexRules{nodes: 2, quiet: true, handoff: true}

func whole(m sim.Memory) sim.Options {
	return sim.Options{Memory: m, Reduce: sim.ByState, Strategy: sim.Exhaustive(sim.Unbounded), Budget: 50_000_000}
}

func TestMutexProtocol_Passes(t *testing.T) {
	skipUnderRace(t)
	symmetric, ordered := fullMutex, fullMutex
	symmetric.symmetric, ordered.ordered = true, true
	checked, shortcut := fullMutex, fullMutex
	checked.invariant = true
	shortcut.invariant, shortcut.shortcut = true, true
	for _, c := range []struct {
		text  string
		rules mutexRules
		long  bool
	}{
		{"L,L", fullMutex, false},
		{"LL,LL", checked, false},
		{"LL,LL", shortcut, false},
		{"DD,LL", checked, false},
		{"TT,LL", fullMutex, false},
		{"DD,LL", symmetric, false},
		{"DD,LL", ordered, false},
		{"L,L,L", mutexRules{nodes: 1, invariant: true}, false},
		{"L,L,L", mutexRules{nodes: 2, quiet: true, symmetric: true}, false},
		{"L,L,L", ordered, true},
		{"D,D,L", symmetric, true},
		{"T,L,L", fullMutex, true},
		{"L,L,L", fullMutex, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("%s/%+v", c.text, c.rules), func(t *testing.T) {
			t.Parallel()
			m := sim.TSO
			if c.rules.ordered {
				m = sim.SC
			}
			mustPass(t, mutexProgram(c.rules, c.text), whole(m))
		})
	}
}

// TestMutexProtocol_Faults takes away one thing at a time. H1 to H8 are the holes of the design before the setter looked.
func TestMutexProtocol_Faults(t *testing.T) {
	skipUnderRace(t)
	var (
		one       = mutexRules{nodes: 1}
		calm      = mutexRules{nodes: 1, quiet: true}
		two       = mutexRules{nodes: 2, quiet: true}
		hand      = mutexRules{nodes: 1, handoff: true}
		symmetric = mutexRules{nodes: 2, quiet: true, symmetric: true}
		ordered   = mutexRules{nodes: 2, quiet: true, ordered: true}
	)
	for _, f := range []struct {
		hole  string
		name  string
		text  string
		rules mutexRules
		steps int
	}{
		{"H1", "nobody looks", "L,L,L", one, 23},
		{"H2", "each waiter fences instead of the look", "L,L,L", calm, 31},
		{"H3", "state validated before tag", "L,L,L", ordered, 27},
		{"H3 symmetric", "state validated before tag", "L,L,L", symmetric, 25},
		{"H4", "race path: count without a fence", "L,L", one, 19},
		{"H5", "count by plain store", "L,L", one, 18},
		{"H6", "only tag != 0 validated", "L,L,L", two, 33},
		{"H7", "symmetric: tag loaded before the exchange", "L,L", mutexRules{nodes: 1, symmetric: true}, 14},
		{"H8", "no membarrier", "L,L", one, 17},

		{"", "no second tag load", "L,L", one, 18},
		{"", "tag not validated", "L,L", calm, 22},
		{"", "state not validated", "L,L", one, 18},
		{"", "no re-arm", "L,L,L", one, 24},
		{"", "quiet without the bucket lock", "L,L", calm, 22},
		{"", "quiet without a look at the queue", "L,L", calm, 22},
		{"", "look before the fence", "L,L,L", one, 24},
		{"", "timed setter leaves before fence and look", "D,L,L", one, 18},
		{"", "contended unlock by load and plain store", "L,L", one, 18},
		{"", "leaver drops its duty", "D,L,L", one, 34},
		{"", "handoff clears P", "L,L,L", hand, 32},

		{"SC", "no second tag load", "L,L", ordered, 20},
		{"SC", "tag not validated", "L,L", ordered, 24},
		{"SC", "state not validated", "L,L", ordered, 21},
		{"SC", "no re-arm", "L,L,L", ordered, 32},
		{"SC", "quiet without the bucket lock", "L,L", ordered, 24},
	} {
		t.Run(f.hole+" "+f.name, func(t *testing.T) {
			o := sim.Options{Memory: sim.TSO, Reduce: sim.ByState, Strategy: sim.Exhaustive(6)}
			if f.rules.ordered {
				o.Memory = sim.SC
			}
			fault{name: f.name, steps: f.steps, kind: sim.KindDeadlock}.check(t, mutexProgram(f.rules, f.text), o)
		})
	}

	// The repair of H2 is one if the tag never returns to 0, and the order of H3 does no harm where the setter looks.
	for _, c := range []struct {
		name  string
		rules mutexRules
		long  bool
	}{
		{"each waiter fences instead of the look", one, false},
		{"state validated before tag", calm, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run("passes "+c.name, func(t *testing.T) {
			o := whole(sim.TSO)
			o.Mutant = c.name
			mustPass(t, mutexProgram(c.rules, "L,L,L"), o)
		})
	}
}
