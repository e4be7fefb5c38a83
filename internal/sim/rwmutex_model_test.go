//go:build sim

package sim_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// The reader-writer lock with one counter per P. Invariant I3: the count in the word plus the sum of the counters is the
// number of readers inside, wherever each of them entered and left.

// rwWord is {readers signed, per-P mode, writer}.
const (
	rwW   = 1 << 0
	rwPP  = 1 << 1
	rwOne = 1 << 2
)

func rwCount(v int64) int64 { return v >> 2 }

type rwRules struct {
	perP   bool // starts in per-P mode
	grow   bool // a reader may switch the counters on
	shrink bool // a writer may switch them off
	plain  bool // counters by plain stores, and a heavy fence; else by atomic ones
}

const rwProcs = 2

type rwModel struct {
	rwRules
	m       sim.Mutex
	w       sim.Int64
	c       [rwProcs]sim.Int64
	goal    sim.Int64
	evt     sim.Uint32
	rb, wb  bucket // of readers and of the writer
	balance int64  // K of the owner
	readers int    // inside
	writers int
}

func (m *rwModel) store(p int, v int64) {
	if m.plain {
		sim.StorePlainInt64(&m.c[p], v)
	} else {
		m.c[p].Store(v)
	}
}

// add is a counter store of a pinned thread.
func (m *rwModel) add(p int, d int64) { m.store(p, sim.LoadPlainInt64(&m.c[p])+d) }

func (m *rwModel) enterReader() {
	if m.readers++; m.writers != 0 {
		sim.Failf("a reader beside the writer")
	}
}

func (m *rwModel) enterWriter() {
	if m.writers++; m.writers != 1 || m.readers != 0 {
		sim.Failf("a writer beside %d readers and %d writers", m.readers, m.writers-1)
	}
}

func (m *rwModel) rLock(a *actor) {
	for {
		a.at(1)
		v := m.w.Load() // R0
		if v&rwW != 0 {
			if m.sleep(a) {
				break
			}
			continue
		}
		if v&rwPP == 0 {
			if m.enterSimple(a) {
				break
			}
		} else if m.enterPerP(a) {
			break
		}
	}
	m.enterReader()
	if m.grow && sim.Choose(2) == 1 {
		v := m.w.Load()
		if v&rwPP == 0 && (v&rwW == 0 || sim.Mutant("grow under W")) {
			m.w.CompareAndSwap(v, v|rwPP)
		}
	}
	if sim.Mutant("reader leaves the mode") {
		if v := m.w.Load(); v&(rwW|rwPP) == rwPP {
			m.w.CompareAndSwap(v, v&^rwPP)
		}
	}
}

// enterSimple is R1.
func (m *rwModel) enterSimple(a *actor) bool {
	v := m.w.Add(rwOne)
	if v&rwW == 0 {
		return true
	}
	a.at(2)
	if v = m.w.Add(-rwOne); v&rwW == 0 {
		return false
	}
	if !sim.Mutant("undo on the count does not depart") {
		m.depart(a, 3, v)
	}
	return m.sleep(a)
}

// enterPerP is R2.
func (m *rwModel) enterPerP(a *actor) bool {
	p := sim.Pin()
	a.at(4, uint64(p))
	m.add(p, +1)
	v := m.w.Load()
	if v&(rwPP|rwW) == rwPP {
		sim.Unpin()
		return true
	}
	if sim.Mutant("undo on another P") {
		sim.Unpin()
		p = sim.Pin()
	}
	a.at(5, uint64(p), uint64(v&rwW))
	m.add(p, -1)
	if first := v; true {
		v = m.w.Load()
		if sim.Mutant("undo decided by the first look") {
			v = first
		}
	}
	a.at(6, uint64(v&rwW))
	sim.Unpin()
	if v&rwW == 0 {
		return false
	}
	if !sim.Mutant("undo without notice") {
		m.late(a, 7)
	}
	return m.sleep(a)
}

// sleep is RS; true: the reader was let in.
func (m *rwModel) sleep(a *actor) bool {
	a.at(8)
	m.rb.count.Add(1)
	m.rb.mu.Lock()
	if m.w.Load()&rwW == 0 {
		m.rb.mu.Unlock()
		m.rb.count.Add(^uint32(0))
		return false
	}
	m.rb.push(&a.waiter, false)
	m.rb.mu.Unlock()
	a.at(9)
	a.wait()
	return true
}

func (m *rwModel) rUnlock(a *actor) {
	m.readers--
	a.at(10)
	v := m.w.Load() // U0
	if v&rwW != 0 || v&rwPP == 0 {
		v = m.w.Add(-rwOne)
		if v&rwPP == 0 && rwCount(v) < 0 {
			sim.Failf("RUnlock of unlocked")
		}
		if v&rwW != 0 {
			m.depart(a, 11, v)
		}
		return
	}
	p := sim.Pin() // U1
	a.at(12, uint64(p))
	m.add(p, -1)
	if sim.Mutant("RUnlock without a look after") {
		sim.Unpin()
		return
	}
	v = m.w.Load()
	a.at(13, uint64(v&rwW))
	sim.Unpin()
	if v&rwW != 0 {
		m.late(a, 14)
	}
}

// depart follows every decrement of the count in the word that saw W.
func (m *rwModel) depart(a *actor, pc int, v int64) {
	target := int64(0)
	if v&rwPP != 0 {
		target = m.goal.Load()
	}
	if rwCount(v) == target {
		m.unparkWriter(a, pc)
	}
}

// late follows every counter store that saw W only afterwards.
func (m *rwModel) late(a *actor, pc int) {
	a.at(pc)
	if sim.Mutant("leavers sum by themselves") {
		if sum := m.sum(a, uint64(pc)); rwCount(m.w.Load())+sum == 0 {
			m.unparkWriter(a, pc)
		}
		return
	}
	if !sim.Mutant("LATE without evt") {
		m.evt.Add(1)
	}
	m.unparkWriter(a, pc)
}

func (m *rwModel) unparkWriter(a *actor, pc int) {
	a.at(100 + pc)
	if m.wb.count.Load() == 0 {
		return
	}
	m.wb.mu.Lock()
	w := m.wb.pop()
	m.wb.mu.Unlock()
	if w != nil {
		w.signal.Store(sigWake)
	}
}

// sum adds the counters up; context is what the caller goes on with.
func (m *rwModel) sum(a *actor, context uint64) (s int64) {
	for p := range m.c {
		s += sim.LoadPlainInt64(&m.c[p])
		a.at(27, context, uint64(p), uint64(s))
	}
	return s
}

// lock is Lock; with timed it may give up at any point, with try it does instead of waiting.
func (m *rwModel) lock(a *actor, timed, try bool) bool {
	if try {
		if !m.m.TryLock() {
			return false
		}
	} else {
		m.m.Lock()
	}
	a.at(20)
	early := int64(0)
	if sim.Mutant("mode read before the flag") {
		early = m.w.Load()
	}
	v := m.w.Or(rwW) // W1
	perP := (v|rwW)&rwPP != 0
	if sim.Mutant("mode read before the flag") {
		perP = early&rwPP != 0
	}
	a.at(21, bit(perP))
	if perP && m.plain && !sim.Mutant("no membarrier") {
		sim.HeavyFence()
	}
	for {
		a.at(22, bit(perP))
		e, s := uint32(0), int64(0) // W2
		if perP && !sim.Mutant("evt read after the scan") {
			e = m.evt.Load()
		}
		a.at(23, bit(perP), uint64(e))
		if perP && !sim.Mutant("writer ignores the counters") {
			s = m.sum(a, uint64(e)<<8)
		}
		if perP && sim.Mutant("evt read after the scan") {
			e = m.evt.Load()
		}
		a.at(24, bit(perP), uint64(e), uint64(s))
		if perP && !sim.Mutant("goal published late") {
			m.goal.Store(-s)
		}
		v := m.w.Load()
		switch {
		case rwCount(v) == -s:
			m.balance = rwCount(v)
			m.enterWriter()
			return true
		case rwCount(v) < -s:
			sim.Failf("a sum below 0")
		}
		if perP && sim.Mutant("goal published late") {
			m.goal.Store(-s)
		}
		if try || timed && sim.Choose(2) == 1 {
			m.release(a, 0, 0, sim.Mutant("timed writer leaves the mode") && perP)
			return false
		}
		a.at(25, bit(perP), uint64(e), uint64(s))
		if m.sleepWriter(a, perP, timed, e, s) {
			m.release(a, 0, 0, false)
			return false
		}
	}
}

// sleepWriter is W3; true: a timed writer gives up.
func (m *rwModel) sleepWriter(a *actor, perP, timed bool, e uint32, s int64) bool {
	m.wb.count.Add(1)
	m.wb.mu.Lock()
	moved := perP && !sim.Mutant("leavers sum by themselves") && m.evt.Load() != e
	if !moved && !sim.Mutant("writer sleeps without a look at the count") {
		moved = rwCount(m.w.Load()) == -s
	}
	if moved {
		m.wb.mu.Unlock()
		m.wb.count.Add(^uint32(0))
		return false
	}
	m.wb.push(&a.waiter, false)
	m.wb.mu.Unlock()
	a.at(26, bit(perP))
	if !timed {
		a.wait()
		return false
	}
	if sim.WaitWhileEqualFor32(&a.signal, sigNone, deadline) != sigNone {
		a.wait()
		return false
	}
	m.wb.mu.Lock()
	queued := m.wb.remove(&a.waiter)
	m.wb.mu.Unlock()
	if !queued {
		a.wait()
	}
	return true
}

// unlock is X1 to X3; keep: 1 to stay inside as a reader.
func (m *rwModel) unlock(a *actor, keep int64) {
	m.writers--
	m.readers += int(keep)
	k := m.balance
	shrink := m.shrink && sim.Choose(2) == 1
	a.at(30, uint64(k), bit(shrink), uint64(keep))
	v := m.w.Load()
	shrink = shrink && v&rwPP != 0
	if v&rwPP != 0 && k != 0 { // X1
		if sim.Mutant("leave without rebase") {
			k = 0
		} else {
			p := sim.Pin()
			m.add(p, k)
			sim.Unpin()
		}
	}
	m.release(a, keep, k, shrink)
}

// release is X2 and X3.
func (m *rwModel) release(a *actor, keep, k int64, shrink bool) {
	a.at(31, uint64(keep), uint64(k), bit(shrink))
	m.rb.mu.Lock()
	in := m.rb.queue
	m.rb.queue = nil
	d := (int64(len(in))+keep-k)*rwOne - rwW
	if shrink {
		d -= rwPP
	}
	m.rb.count.Add(-uint32(len(in)))
	m.w.Add(d)
	a.at(32)
	m.rb.mu.Unlock()
	for _, r := range in {
		r.signal.Store(sigWake)
	}
	a.at(33)
	m.m.Unlock()
}

// rwProgram: r reads, w writes, d writes or gives up, t TryLock, g writes and downgrades.
func rwProgram(r rwRules, text string) sim.Program {
	var m *rwModel
	p := letters("rwmutex", text, func(actors []*actor) {
		m = &rwModel{rwRules: r}
		sim.Name(&m.m, "m")
		sim.Name(&m.w, "w", "W", "PP")
		sim.Name(&m.c, "c")
		sim.Name(&m.goal, "goal")
		sim.Name(&m.evt, "evt")
		sim.Name(&m.rb, "readers")
		sim.Name(&m.wb, "writer")
		if r.perP {
			m.w.Store(rwPP)
		}
	}, func(a *actor, letter byte) {
		switch letter {
		case 'r':
			m.rLock(a)
			m.rUnlock(a)
		case 'w', 'd', 't':
			if m.lock(a, letter == 'd', letter == 't') {
				m.unlock(a, 0)
			}
		case 'g':
			m.lock(a, false, false)
			m.unlock(a, 1)
			m.rUnlock(a)
		}
	})
	p.Final = func() error {
		v, sum := m.w.Load(), int64(0)
		for i := range m.c {
			sum += m.c[i].Load()
		}
		switch {
		case v&rwW != 0 || rwCount(v)+sum != 0:
			return fmt.Errorf("word %d, mode %d, sum %d at rest", rwCount(v), v&3, sum)
		case v&rwPP == 0 && sum != 0:
			return fmt.Errorf("sum %d at rest in simple mode", sum)
		case len(m.rb.queue)+len(m.wb.queue) > 0 || m.rb.count.Load()+m.wb.count.Load() != 0:
			return fmt.Errorf("somebody is queued at rest")
		}
		return nil
	}
	p.Outcome = func() string { return fmt.Sprint(m.w.Load(), m.c[0].Load(), m.c[1].Load(), m.goal.Load()) }
	p.State = func(h *sim.Hash) {
		m.rb.hash(h)
		m.wb.hash(h)
		h.Add(uint64(m.balance))
		h.Add(uint64(m.readers)<<8 | uint64(m.writers))
	}
	return p
}

func rwOptions(r rwRules) sim.Options {
	o := whole(sim.TSO)
	if !r.plain {
		o.Memory = sim.SC
	}
	o.Procs = rwProcs
	return o
}

func TestRWMutexProtocol_Passes(t *testing.T) {
	skipUnderRace(t)
	var (
		perP    = rwRules{plain: true, perP: true}
		change  = rwRules{plain: true, grow: true, shrink: true}
		both    = rwRules{plain: true, perP: true, grow: true, shrink: true}
		ordered = rwRules{perP: true, grow: true, shrink: true}
	)
	for _, c := range []struct {
		text  string
		rules rwRules
		long  bool
	}{
		{"r,w", both, false},
		{"rr,ww", both, false},
		{"rr,ww", change, false},
		{"r,d", both, false},
		{"rr,g", change, false},
		{"r,t", both, false},
		{"r,w,w", both, false},
		{"r,w,d", both, false},
		{"r,r,w", perP, false},
		{"r,r,w", ordered, false},
		{"r,r,w", both, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("%s/%+v", c.text, c.rules), func(t *testing.T) {
			t.Parallel()
			mustPass(t, rwProgram(c.rules, c.text), rwOptions(c.rules))
		})
	}
}

func TestRWMutexProtocol_Faults(t *testing.T) {
	skipUnderRace(t)
	var (
		perP   = rwRules{plain: true, perP: true}
		simple = rwRules{plain: true}
		change = rwRules{plain: true, grow: true, shrink: true}
		grow   = rwRules{plain: true, grow: true}
		both   = rwRules{plain: true, perP: true, grow: true, shrink: true}
	)
	for _, f := range []struct {
		hole  string
		name  string
		text  string
		rules rwRules
		steps int
	}{
		{"R1", "undo without notice", "r,w", perP, 21},
		{"R2", "leavers sum by themselves", "r,r,w", perP, 29},
		{"R3", "undo decided by the first look", "r,r,ww", both, 41},
		{"R4", "undo on another P", "r,w", perP, 15},
		{"R5", "mode read before the flag", "r,w", grow, 16},
		{"R6", "reader leaves the mode", "r,w", perP, 11},
		{"R6 timed", "timed writer leaves the mode", "r,d", perP, 18},
		{"R7", "leave without rebase", "r,w", both, 20},
		{"R8", "grow under W", "rr,ww", change, 35},
		{"", "no membarrier", "r,w", perP, 10},
		{"", "RUnlock without a look after", "r,w", perP, 21},
		{"", "writer ignores the counters", "r,w", perP, 7},
		{"", "LATE without evt", "r,w", perP, 22},
		{"", "evt read after the scan", "r,w", perP, 22},
		{"", "undo on the count does not depart", "r,w", simple, 13},
		{"", "writer sleeps without a look at the count", "r,w", simple, 21},
	} {
		t.Run(f.hole+" "+f.name, func(t *testing.T) {
			o := rwOptions(f.rules)
			o.Strategy = sim.Exhaustive(6)
			o.Migrate = f.hole == "R4"
			fault{name: f.name, steps: f.steps}.check(t, rwProgram(f.rules, f.text), o)
		})
	}
	o := rwOptions(both)
	o.Mutant = "goal published late" // before W3's validation: equivalent
	mustPass(t, rwProgram(both, "r,w"), o)
}
