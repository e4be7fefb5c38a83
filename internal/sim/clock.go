//go:build sim

package sim

import (
	"math"
	"time"
)

// clock is the part of the engine that knows the time. The clock moves when a timer fires and when a spinning thread is
// let wait; no operation takes time by itself.
type clock struct {
	now    int64
	used   bool // a timer, a limit or a spin to a deadline has occurred in this schedule
	timers []*Timer
	rand   uint64
}

const (
	epoch   = int64(1_000_000_000) // Nanotime at the start of a schedule: never 0, deadlines before it are past
	tickFor = int64(100_000)       // how far the clock moves for a thread that spins to a deadline
)

func (c *clock) reset() {
	c.now, c.rand, c.used = epoch, 0, false
	clear(c.timers)
	c.timers = c.timers[:0]
}

var processStart = time.Now()

// Nanotime returns the time in nanoseconds from some moment on: virtual in a run, of the monotonic clock outside.
func Nanotime() int64 {
	t := current()
	if t == nil {
		return int64(time.Since(processStart)) + 1
	}
	if t.cost != nil {
		return t.cost.nanotime()
	}
	t.reads.time, t.e.clock.used = true, true
	t.hash = mix(t.hash, uint64(t.e.now))
	return t.e.now
}

// A Timer runs a function in a thread of its own, as time.AfterFunc does. In a run it may fire at any scheduling point from
// its creation on, whatever its duration: a thread can always be slow enough for that. Firing is a choice of the
// strategy and no preemption.
type Timer struct {
	e       *engine
	real    *time.Timer
	f       func()
	when    int64
	pending bool
	w       *word
	place   uint64 // identifies it, the same in every schedule
}

// AfterFunc starts a timer that runs f after d.
func AfterFunc(d time.Duration, f func()) *Timer {
	t := current()
	if t == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t.point(opTimer, nil)
	t.drainAll()
	e := t.e
	tm := &Timer{e: e, pending: true, when: e.now + max(int64(d), 0), f: f}
	t.serial++
	tm.place = t.hash
	if e.byState {
		tm.place = mix(uint64(t.id)+1, t.serial)
	}
	Name(tm, "timer")
	tm.w = e.word(addr(tm), object)
	tm.w.place = tm.place
	e.commit(tm.w, value{n: 1}, t.hash)
	e.addTimer(tm)
	e.note(t, tm.w, value{}, value{n: 1}, d.String())
	return tm
}

// addTimer gives the timer the first free number.
func (c *clock) addTimer(tm *Timer) {
	c.used = true
	for i, old := range c.timers {
		if !old.pending {
			c.timers[i] = tm
			return
		}
	}
	if len(c.timers) > math.MaxUint8 {
		panic("sim: more than 256 timers pending")
	}
	c.timers = append(c.timers, tm)
}

// Stop prevents the timer from firing; false: it has fired or was stopped. The function may still be running then.
func (tm *Timer) Stop() bool {
	t := current()
	if tm.real != nil {
		return tm.real.Stop()
	}
	if t == nil { // left over from a schedule that is over
		return false
	}
	t.point(opStop, tm.w)
	t.drainAll()
	t.observe(value{n: tm.w.obj}, tm.w.history)
	was := tm.pending
	tm.pending = false
	t.put(tm.w, 0, "")
	return was
}

// Sleep blocks the thread for d.
func Sleep(d time.Duration) {
	t := current()
	if t == nil {
		time.Sleep(d)
		return
	}
	t.point(opSleep, nil)
	t.unpinnedFor("Sleep")
	t.drainAll()
	t.e.note(t, nil, value{}, value{}, d.String())
	t.limit(d)
	t.block(asleep, "Sleep")
	t.late = false
}

// limit lets the clock end the thread's next wait.
func (t *thread) limit(d time.Duration) {
	t.until = t.e.now + max(int64(d), 0)
	t.limited, t.late, t.e.clock.used = true, false, true
}

// expire is what the clock does to a thread that waits with a limit.
func (e *engine) expire(t *thread) *thread {
	e.now = max(e.now, t.until)
	t.limited, t.late, t.guard = false, true, nil
	t.status = ready
	t.hash = mix(t.hash, uint64(e.now))
	if e.tracing {
		e.noteText(t, "its time is over")
	}
	e.ran(t)
	return t
}

// gatherTime lists what the passing of time can do.
func (e *engine) gatherTime() {
	if !e.clock.used {
		return
	}
	if e.opt.Timers == AnyTime || len(e.opts) == 0 {
		for i, tm := range e.timers {
			if tm.pending {
				e.opts = append(e.opts, option{optTimer, uint8(i), 0})
			}
		}
		for _, t := range e.threads[:e.n] {
			if t.limited && (t.status == asleep || t.barred()) {
				e.opts = append(e.opts, option{optLate, uint8(t.id), 0})
			}
		}
	}
	if e.ticks < e.opt.Ticks {
		for _, t := range e.threads[:e.n] {
			if t.status == paused && t.reads.time {
				e.opts = append(e.opts, option{optTick, uint8(t.id), 0})
			}
		}
	}
}

// fire lets timer i fire: a thread begins to run its function. That costs no preemption, nor does it if others go on before
// the function has done anything.
func (e *engine) fire(i int) *thread {
	tm := e.timers[i]
	tm.pending = false
	e.now = max(e.now, tm.when)
	e.commit(tm.w, value{}, mix(tm.w.history, 6))
	t := e.spawn(timerName(i), tm.f, tm.place)
	t.skip = false
	if e.tracing {
		e.noteText(t, "timer fires")
	}
	e.ran(t)
	t.free = true
	return t
}

func timerName(i int) string { return "timer" + string(rune('0'+i%10)) }

// tick lets time pass for a thread that spins to a deadline.
func (e *engine) tick(t *thread) {
	e.ticks++
	e.now += tickFor
	t.status = ready
	t.hash = mix(t.hash, uint64(e.now))
	if e.tracing {
		e.noteText(t, "time passes")
	}
}

// key adds to the hash of the state which timers are pending.
func (c *clock) key() uint64 {
	sum := uint64(c.now)
	for _, tm := range c.timers {
		if tm.pending {
			sum += mix(tm.place, uint64(tm.when))
		}
	}
	return sum
}
