//go:build sim

package sim_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// resizeModel is a table that is replaced by another one under its users: a lock of one word whose waiters are in the
// bucket that the pointer leads to, and a count that is read without the bucket's lock.
type resizeModel struct {
	state  sim.Uint32
	hash   sim.Uint32 // which table is current
	tables [3]bucket
	inside int
}

func (m *resizeModel) lock(a *actor) {
	duty := uint32(0)
	for {
		a.at(1, uint64(duty))
		s := m.state.Load()
		if s&mL == 0 {
			if m.state.CompareAndSwap(s, s|mL|duty) {
				break
			}
			continue
		}
		if s&mP == 0 && !m.state.CompareAndSwap(s, s|mP) {
			continue
		}
		if m.park(a, duty) {
			duty = mP * uint32(bit(a.wait() == sigMore))
		}
	}
	if m.inside++; m.inside != 1 {
		sim.Failf("two owners")
	}
}

// park enqueues the waiter unless the word or the table changed; queued: a signal will come.
func (m *resizeModel) park(a *actor, duty uint32) (queued bool) {
	h := m.hash.Load()
	a.at(2, uint64(duty), uint64(h))
	b := &m.tables[h]
	b.count.Add(1)
	b.mu.Lock()
	if m.stale(h) || m.state.Load()&(mL|mP) != mL|mP {
		b.mu.Unlock()
		b.count.Add(^uint32(0))
		return false
	}
	b.push(&a.waiter, false)
	b.mu.Unlock()
	a.at(3)
	return true
}

func (m *resizeModel) stale(h uint32) bool {
	return !sim.Mutant("no re-check under the lock") && m.hash.Load() != h
}

func (m *resizeModel) unlock(a *actor) {
	m.inside--
	if m.state.Swap(0)&mP == 0 {
		return
	}
	for {
		a.at(4)
		h := m.hash.Load()
		b := &m.tables[h]
		if b.count.Load() == 0 {
			if sim.Mutant("no second look at the pointer") || m.hash.Load() == h {
				return
			}
			continue
		}
		b.mu.Lock()
		if m.stale(h) {
			b.mu.Unlock()
			continue
		}
		w := b.pop()
		more := len(b.queue) > 0
		b.mu.Unlock()
		if w != nil {
			w.signal.Store(sigWake + uint32(bit(more)))
		}
		return
	}
}

// resize moves everybody to a new table: raise the new count, move, publish, lower the old count, all under the old lock.
func (m *resizeModel) resize(a *actor) {
	h := m.hash.Load()
	a.at(5, uint64(h))
	from, to := &m.tables[h], &m.tables[h+1]
	from.mu.Lock()
	n := uint32(len(from.queue))
	move := func() { to.queue, from.queue = from.queue, nil }
	lower := func() { from.count.Add(-n) }
	publish := func() { m.hash.Store(h + 1) }
	var steps []func()
	switch {
	case sim.Mutant("publish before move"):
		steps = []func(){publish, func() { to.count.Add(n) }, move, lower}
	case sim.Mutant("old count lowered first"):
		steps = []func(){lower, func() { to.count.Add(n) }, move, publish}
	default:
		steps = []func(){func() { to.count.Add(n) }, move, publish, lower}
	}
	for _, f := range steps {
		f()
	}
	from.mu.Unlock()
}

// resizeProgram: L Lock/Unlock, Z resize.
func resizeProgram(text string) sim.Program {
	var m *resizeModel
	p := letters("resize", text, func([]*actor) {
		m = &resizeModel{}
		sim.Name(&m.state, "state", "L", "P")
		sim.Name(&m.hash, "hash")
		sim.Name(&m.tables, "table")
	}, func(a *actor, letter byte) {
		if letter == 'Z' {
			m.resize(a)
			return
		}
		m.lock(a)
		m.unlock(a)
	})
	p.Final = func() error {
		for i := range m.tables {
			if b := &m.tables[i]; len(b.queue) > 0 || b.count.Load() != 0 {
				return fmt.Errorf("table %d at rest: %d queued, count %d", i, len(b.queue), b.count.Load())
			}
		}
		if s := m.state.Load(); s != 0 {
			return fmt.Errorf("state %d at rest", s)
		}
		return nil
	}
	p.State = func(h *sim.Hash) {
		for i := range m.tables {
			m.tables[i].hash(h)
		}
	}
	return p
}

func TestResize_Passes(t *testing.T) {
	skipUnderRace(t)
	for _, text := range []string{"L,L,Z", "LL,L,Z", "LL,LL,ZZ", "L,L,L,Z"} {
		if testing.Short() && text == "L,L,L,Z" {
			continue
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			mustPass(t, resizeProgram(text), whole(sim.SC))
		})
	}
}

func TestResize_Faults(t *testing.T) {
	skipUnderRace(t)
	for _, f := range []fault{
		{name: "no second look at the pointer", program: "L,L,Z", steps: 18},
		{name: "publish before move", program: "L,L,Z", steps: 19},
		{name: "old count lowered first", program: "L,L,Z", steps: 19},
		{name: "no re-check under the lock", program: "L,L,Z", steps: 19},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.check(t, resizeProgram(f.program), sim.Options{Reduce: sim.ByState, Strategy: sim.Exhaustive(6)})
		})
	}
}
