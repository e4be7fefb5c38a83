//go:build sim

package sim_test

import (
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// condModel is Cond.Broadcast that moves the waiters onto the mutex.
type condModel struct {
	mutexModel
	cond bucket
	flag bool // what is waited for, under the mutex
}

func (c *condModel) wait(a *actor) {
	c.cond.count.Add(1)
	c.cond.mu.Lock()
	c.cond.push(&a.waiter, false)
	c.cond.mu.Unlock()
	c.unlock(a)
	a.at(40)
	sig := a.waiter.wait()
	if sig == sigHandoff {
		c.enter(a)
		return
	}
	if sig == sigMore {
		c.duties++
		c.mores--
	}
	c.lockSlow(a, false, sig == sigMore, true)
}

func (c *condModel) broadcast(a *actor) {
	if c.cond.count.Load() == 0 { // 1
		return
	}
	g, setter := c.lockBoth(a)
	a.at(41, uint64(g), bit(setter))
	b := c.bucket(g)
	moved := c.cond.queue
	n := uint32(len(moved))
	if sim.Mutant("P announced before count") {
		free := c.announceAll()
		b.count.Add(n)
		c.move(a, b, g, moved, free, setter)
		return
	}
	b.count.Add(n) // 4
	c.move(a, b, g, moved, c.announceAll(), setter)
}

// lockBoth is steps 2 and 3: the tag is set and stays while both buckets are locked.
func (c *condModel) lockBoth(a *actor) (g uint32, setter bool) {
	for {
		a.at(42, bit(setter))
		if g = c.tag.Load(); g == 0 { // 2
			g = a.node
			if !sim.Mutant("tag not set") {
				if !c.tag.CompareAndSwap(0, g) {
					continue
				}
				setter = true
				c.looking++
			}
		}
		c.cond.mu.Lock() // 3
		c.bucket(g).mu.Lock()
		if sim.Mutant("tag not set") || c.tag.Load() == g {
			return g, setter
		}
		c.bucket(g).mu.Unlock()
		c.cond.mu.Unlock()
		if setter { // somebody returned it to quiet: it is no longer this one's tag
			setter = false
			c.looking--
		}
	}
}

// announceAll sets P in a locked word; free: the word is not locked.
func (c *condModel) announceAll() (free bool) {
	for {
		s := c.state.Load()
		if s&mL == 0 {
			return true
		}
		if s&mP != 0 || c.state.CompareAndSwap(s, s|mP) {
			return false
		}
	}
}

// move is the rest of 4, and 5 and 6.
func (c *condModel) move(a *actor, b *bucket, g uint32, moved []*waiter, free, setter bool) {
	a.at(43, uint64(g), bit(free), bit(setter))
	var first *waiter
	c.cond.queue = nil
	if free && len(moved) > 0 {
		first, moved = moved[0], moved[1:]
		c.releasing++
		b.count.Add(^uint32(0))
	}
	b.queue = append(append([]*waiter(nil), b.queue...), moved...)
	more := len(moved) > 0
	n := len(moved) + int(bit(first != nil))
	c.cond.count.Add(-uint32(n))
	a.at(44, uint64(g), bit(setter), bit(more), bit(first != nil))
	b.mu.Unlock() // 5
	c.cond.mu.Unlock()
	if first != nil {
		if more {
			c.mores++
			first.signal.Store(sigMore)
		} else {
			first.signal.Store(sigWake)
		}
		c.releasing--
	}
	a.at(45, uint64(g), bit(setter))
	if !setter {
		return
	}
	defer func() { c.looking-- }()
	if sim.Mutant("setter skips the look") {
		return
	}
	sim.HeavyFence() // 6
	if b.count.Load() != 0 && c.announceAll() {
		c.wake(a, 46, g)
	}
}

// condProgram: W waits for the flag, B sets it and broadcasts under the lock, b after unlocking; L Lock/Unlock.
func condProgram(r mutexRules, text string) sim.Program {
	var c *condModel
	p := letters("cond", text, func(actors []*actor) {
		c = &condModel{}
		c.mutexRules = r
		c.name(actors)
		sim.Name(&c.cond, "cond")
	}, func(a *actor, letter byte) {
		c.lock(a, false)
		switch letter {
		case 'W':
			for !c.flag {
				c.wait(a)
			}
		case 'B':
			c.flag = true
			c.broadcast(a)
		case 'b':
			c.flag = true
		}
		c.unlock(a)
		if letter == 'b' {
			a.at(47)
			c.broadcast(a)
		}
	})
	if r.invariant {
		p.Check = func() error { return c.check() }
	}
	p.Final = func() error { return c.final() }
	p.State = func(h *sim.Hash) {
		c.hash(h)
		c.cond.hash(h)
		h.Add(bit(c.flag))
	}
	return p
}

func TestBroadcast_Passes(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		text  string
		rules mutexRules
		long  bool
	}{
		{"W,B", mutexRules{nodes: 2, quiet: true, handoff: true, invariant: true}, false},
		{"W,b", mutexRules{nodes: 2, quiet: true, handoff: true, invariant: true}, false},
		{"W,BL", fullMutex, false},
		{"W,W,b", mutexRules{nodes: 1}, false},
		{"W,W,B", mutexRules{nodes: 1}, false},
		{"W,L,b", mutexRules{nodes: 1}, true},
		{"W,W,b", mutexRules{nodes: 2, quiet: true}, true},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			mustPass(t, condProgram(c.rules, c.text), whole(sim.TSO))
		})
	}
}

func TestBroadcast_Faults(t *testing.T) {
	skipUnderRace(t)
	one := mutexRules{nodes: 1}
	for _, f := range []struct {
		hole  string
		name  string
		text  string
		steps int
	}{
		{"H9", "tag not set", "W,B", 21},
		{"", "P announced before count", "W,L,b", 31},
		{"", "setter skips the look", "W,L,b", 30},
	} {
		t.Run(f.hole+" "+f.name+" "+f.text, func(t *testing.T) {
			o := sim.Options{Memory: sim.TSO, Reduce: sim.ByState, Strategy: sim.Exhaustive(6)}
			fault{name: f.name, steps: f.steps, kind: sim.KindDeadlock}.check(t, condProgram(one, f.text), o)
		})
	}
	// What the broadcaster forgets is seen to by its own unlock, if that comes later.
	o := sim.Options{Memory: sim.TSO, Reduce: sim.ByState, Mutant: "setter skips the look", Strategy: sim.Exhaustive(sim.Unbounded)}
	mustPass(t, condProgram(one, "W,L,B"), o)
}
