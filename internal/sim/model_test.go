//go:build sim

package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// The models below are the protocols of the mutex, the condition variable, the table and the reader-writer lock, written
// down on simulated words and nothing else, before and beside the code that ships. They are the engine's first customers:
// the protocols pass, and each hole that was known from reasoning about them is found.
//
// Programs are written as one word per thread and one letter per operation: "LL,D" is a thread that locks twice and one
// that locks once with a deadline.

// bucket is a bucket of the table with one address in it: a lock, a queue, and a count that is read without the lock.
type bucket struct {
	mu    sim.Mutex
	count sim.Uint32
	queue []*waiter // under mu
}

// waiter is what sleeps in a bucket.
type waiter struct {
	id     int
	signal sim.Uint32
}

const (
	sigNone = iota
	sigWake
	sigMore // woken, and more are queued
	sigHandoff
)

func (b *bucket) push(w *waiter, front bool) {
	if front {
		b.queue = append([]*waiter{w}, b.queue...)
	} else {
		b.queue = append(b.queue, w)
	}
}

// wait takes the signal, once there is one.
func (w *waiter) wait() uint32 {
	sim.WaitWhileEqual32(&w.signal, sigNone)
	return w.signal.Swap(sigNone)
}

// pop removes the head; the caller holds mu.
func (b *bucket) pop() *waiter {
	if len(b.queue) == 0 {
		return nil
	}
	w := b.queue[0]
	b.queue = append([]*waiter(nil), b.queue[1:]...)
	b.count.Add(^uint32(0))
	return w
}

func (b *bucket) remove(w *waiter) bool {
	for i, q := range b.queue {
		if q == w {
			b.queue = append(append([]*waiter(nil), b.queue[:i]...), b.queue[i+1:]...)
			b.count.Add(^uint32(0))
			return true
		}
	}
	return false
}

func (b *bucket) hash(h *sim.Hash) {
	h.Add(uint64(len(b.queue)))
	for _, w := range b.queue {
		h.Add(uint64(w.id))
	}
}

// actor is a thread of a model.
type actor struct {
	waiter
	pos  uint64 // number of its operation, for At
	node uint32
}

// at declares where the actor is; everything else it knows is in the arguments.
func (a *actor) at(pc int, locals ...uint64) {
	switch len(locals) { // constant lists do not escape
	case 0:
		sim.At(pc, a.pos)
	case 1:
		sim.At(pc, a.pos, locals[0])
	case 2:
		sim.At(pc, a.pos, locals[0], locals[1])
	case 3:
		sim.At(pc, a.pos, locals[0], locals[1], locals[2])
	default:
		sim.At(pc, a.pos, locals[0], locals[1], locals[2], locals[3])
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

const deadline = time.Millisecond // any time: a deadline may pass at every point

var signalNames = [...]string{"signal of T0", "signal of T1", "signal of T2", "signal of T3"}

// letters makes a program of a text like "LL,D": op runs one operation of an actor.
func letters(name, text string, setup func(actors []*actor), op func(a *actor, letter byte)) sim.Program {
	words := strings.Split(text, ",")
	actors := make([]*actor, len(words))
	p := sim.Program{
		Name: name + " " + text,
		Setup: func() {
			for i := range actors {
				actors[i] = &actor{}
				actors[i].id = i
				sim.Name(&actors[i].signal, signalNames[i])
			}
			setup(actors)
		},
	}
	for i, w := range words {
		p.Threads = append(p.Threads, func() {
			for k := range len(w) {
				actors[i].pos = uint64(k)
				actors[i].at(0)
				op(actors[i], w[k])
			}
			actors[i].at(99)
		})
	}
	return p
}

// skipUnderRace keeps the models out of a test run with the race detector.
func skipUnderRace(t *testing.T) {
	if raceEnabled {
		t.Skip("a step takes thirty times as long under the race detector, and the models have no memory that could race")
	}
}

// mustPass explores a program wholly.
func mustPass(t *testing.T, p sim.Program, o sim.Options) sim.Result {
	t.Helper()
	r := sim.Run(t, p, o)
	if !r.Exhausted && o.Budget == 0 && o.Time == 0 {
		t.Errorf("%s: not exhausted", r)
	}
	return r
}

// fault is a mutant, or a hole of an earlier design, with the program that shows it.
type fault struct {
	name    string
	program string
	steps   int // of the shortest trace that the hand-made model found; 0: not known
	kind    sim.Kind
	with    func(*sim.Options)
}

func (f fault) check(t *testing.T, p sim.Program, o sim.Options) {
	t.Helper()
	if f.with != nil {
		f.with(&o)
	}
	o.Mutant = f.name
	r := sim.Explore(p, o)
	switch {
	case r.Failure == nil:
		t.Errorf("survived: %s", r)
	case f.kind != "" && r.Failure.Kind != f.kind:
		t.Errorf("%s; want %s", r, f.kind)
	case !r.Failure.Reproduced:
		t.Errorf("%s: the replay did not fail in the same way", r)
	case f.steps > 0 && r.Failure.Steps > 3*f.steps:
		t.Errorf("%s; the shortest trace has about %d steps", r, f.steps)
	default:
		t.Logf("%d schedules, %d steps (by hand %d), %d preemptions: %s", r.Schedules, r.Failure.Steps, f.steps, r.Failure.Preemptions, r.Failure.Kind)
	}
}
