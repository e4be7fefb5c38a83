//go:build sim

package sim

import (
	"fmt"
	"sync"
)

// A Wake says why Park returned.
type Wake uint8

const (
	Signalled Wake = iota // by the one Unpark of this wait
	Kicked                // by Kick: a deadline passed or a context was cancelled
)

// A Parker puts one thread at a time to sleep, under the contract of the Parker in internal/rt; the zero value is ready. One
// wait is: Prepare; make the Parker findable; Park. Whoever unlinks it calls Unpark exactly once. Kick may come from
// anywhere at any time; after Kicked the owner finds out, under the lock of its queue, whether it is still queued: if so
// it unlinks itself and calls Leave, else it calls Rearm and parks again.
//
// Each call is one step, so a program with a Parker has far fewer schedules than one with the state machine behind that of
// internal/rt; Gopark and Goready are for checking the latter. Breaking the contract ends the schedule as failed.
type Parker struct {
	wait waitState // outside a run
	mu   sync.Mutex
	cond sync.Cond
}

// waitState is the state of a Parker: a phase, and above it the generation, which changes with every wait.
type waitState uint64

const (
	waitIdle waitState = iota
	waitQueued
	waitParked
	waitSignalled
	waitKicked

	waitPhase = 7
	waitGen   = 8
)

func (s waitState) phase() waitState         { return s & waitPhase }
func (s waitState) to(p waitState) waitState { return s&^waitPhase | p }
func (s waitState) over() waitState          { return s.to(waitIdle) + waitGen }
func (s waitState) in(phases ...waitState) (b bool) {
	for _, p := range phases {
		b = b || s.phase() == p
	}
	return b
}

// Prepare begins a wait and returns the ticket that Kick takes. It is no scheduling point: nobody else can tell.
func (p *Parker) Prepare() (ticket uint32) {
	var s waitState
	p.step(nil, func(old waitState, misuse func(string)) waitState {
		if s = old; !s.in(waitIdle) {
			misuse("Prepare of a Parker that is in use")
		}
		return s.to(waitQueued)
	})
	return uint32(s / waitGen)
}

// Park sleeps until Unpark or Kick. The reason appears in reports. To park while pinned is an error.
func (p *Parker) Park(reason string) Wake {
	t := current()
	if t == nil {
		return p.parkReal()
	}
	w := t.e.word(addr(p), object)
	t.point(opPark, w)
	t.use(w)
	t.unpinnedFor("Park")
	t.drainAll()
	s := waitState(w.obj)
	if s.in(waitQueued) {
		w.holder = t
		t.put(w, uint64(s.to(waitParked)), reason)
		t.block(parked, reason)
		s = waitState(w.obj)
	}
	t.observe(value{n: w.obj}, w.history)
	defer t.reads.clear()
	switch s.phase() {
	case waitSignalled:
		t.put(w, uint64(s.over()), "woken")
		return Signalled
	case waitKicked:
		t.e.note(t, w, value{n: w.obj}, value{n: w.obj}, "kicked")
		return Kicked
	}
	t.fail(KindMisuse, t.name+": Park of a Parker without Prepare")
	panic("unreachable")
}

func (p *Parker) parkReal() Wake {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cond.L = &p.mu
	for p.wait.in(waitQueued) {
		p.cond.Wait()
	}
	if p.wait.in(waitKicked) {
		return Kicked
	}
	p.wait = p.wait.over()
	return Signalled
}

// Unpark ends the wait.
func (p *Parker) Unpark() {
	op := opUnpark
	p.step(&op, func(s waitState, misuse func(string)) waitState {
		if !s.in(waitQueued, waitParked, waitKicked) {
			misuse("Unpark of a Parker that does not wait")
		}
		return s.to(waitSignalled)
	})
}

// Kick wakes the wait that ticket stands for without ending it, if it has not ended yet.
func (p *Parker) Kick(ticket uint32) {
	op := opKick
	p.step(&op, func(s waitState, _ func(string)) waitState {
		if uint32(s/waitGen) == ticket && s.in(waitQueued, waitParked) {
			return s.to(waitKicked)
		}
		return s
	})
}

// Rearm goes back to waiting after Kicked, unless Unpark has come already.
func (p *Parker) Rearm() {
	op := opRearm
	p.step(&op, func(s waitState, _ func(string)) waitState {
		if s.in(waitKicked) {
			return s.to(waitQueued)
		}
		return s
	})
}

// Leave ends a wait that the caller has unlinked itself: nobody will call Unpark.
func (p *Parker) Leave() {
	op := opLeave
	p.step(&op, func(s waitState, misuse func(string)) waitState {
		if !s.in(waitQueued, waitKicked) {
			misuse("Leave of a Parker that was signalled")
		}
		return s.over()
	})
}

// step is every transition but that of Park.
func (p *Parker) step(op *opcode, f func(s waitState, misuse func(string)) waitState) {
	t := current()
	if t == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cond.L = &p.mu
		p.wait = f(p.wait, func(text string) { panic("sim: " + text) })
		p.cond.Broadcast()
		return
	}
	w := t.e.word(addr(p), object)
	if op != nil {
		t.point(*op, w)
		t.drainAll()
	} else {
		t.advance(opPark)
	}
	t.use(w)
	t.observe(value{n: w.obj}, w.history)
	old := waitState(w.obj)
	now := f(old, func(text string) { t.fail(KindMisuse, t.name+": "+text) })
	if now == old {
		return
	}
	note := ""
	if old.in(waitParked) {
		t.rouse(w.holder)
		note = w.holder.name
	}
	t.put(w, uint64(now), note)
}

// rouse makes a parked thread able to run.
func (t *thread) rouse(o *thread) {
	o.status = ready
	if t.cost != nil {
		t.cost.rouse(o.cost)
		return
	}
	if t.e.opt.Ready == RunNext {
		o.after = t
	}
}

// Gopark is runtime.gopark: it puts the caller to sleep and calls commit with a handle of it; Goready may be called from that
// moment on, also by others before commit has returned. If commit returns false the caller goes on at once. Only for
// threads of a run; a seam asks Running first.
func Gopark(commit func(g uintptr) bool, reason string) {
	t := current()
	t.point(opPark, nil)
	t.unpinnedFor("Gopark")
	t.drainAll()
	t.going = goingToPark
	if !commit(uintptr(t.id) + 1) {
		t.going = notParking
		return
	}
	if t.going == goingToPark {
		t.going = isParked
		t.block(parked, reason)
	}
	t.going = notParking
	t.reads.clear()
}

// Goready is runtime.goready: it wakes the thread that Gopark gave this handle to, exactly once.
func Goready(g uintptr) {
	t := current()
	t.point(opUnpark, nil)
	t.drainAll()
	o := t.e.threads[g-1]
	t.hash = mix(t.hash, o.hash)
	o.hash = mix(o.hash, t.hash)
	switch o.going {
	case goingToPark:
	case isParked:
		t.rouse(o)
	default:
		t.fail(KindMisuse, fmt.Sprintf("%s: Goready of %s, which is not parked", t.name, o.name))
	}
	o.going = wasReadied
	t.e.note(t, nil, value{}, value{}, o.name)
}

// going is how far a Gopark has come.
type going uint8

const (
	notParking going = iota
	goingToPark
	isParked
	wasReadied
)
