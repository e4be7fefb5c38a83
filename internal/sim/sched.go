//go:build sim

package sim

import (
	"fmt"
	"strings"
)

// opcode names an operation in traces and stands for it in hashes.
type opcode uint8

const (
	opStart opcode = iota
	opLoad
	opStore
	opSwap
	opCAS
	opAdd
	opAnd
	opOr
	opLoadPlain
	opLoadAcquire
	opStorePlain
	opStoreRelease
	opFence
	opHeavyFence
	opPause
	opWait
	opYield
	opPark
	opUnpark
	opLock
	opTryLock
	opUnlock
	opPin
	opUnpin
	opCPU
	opTimer
	opStop
	opSleep
	opGo
	opPoison
	opStep
	opDrain
	opAtomic
	opKick
	opRearm
	opLeave
)

func (op opcode) String() string {
	return [...]string{"start", "Load", "Store", "Swap", "CAS", "Add", "And", "Or", "LoadPlain", "LoadAcquire", "StorePlain",
		"StoreRelease", "Fence", "HeavyFence", "Pause", "Wait", "Yield", "Park", "Unpark", "Lock", "TryLock", "Unlock", "Pin",
		"Unpin", "CPU", "AfterFunc", "Stop", "Sleep", "Go", "Poison", "Step", "drain",
		"Atomically", "Kick", "Rearm", "Leave"}[op]
}

// optKind is what an option does. The letters spell schedules.
type optKind uint8

const (
	optThread optKind = iota // run the thread to its next scheduling point
	optDrain                 // drain the oldest entry of the thread's store buffer
	optTimer                 // fire the timer
	optTick                  // let time pass for the thread, which spins to a deadline
	optIPI                   // deliver heavy fences to the thread
	optLate                  // let the thread's time limit pass
	optValue                 // not an option: the answer to a choice inside of an operation
)

const optLetters = "Tdtcilv"

// option is something that can happen next.
type option struct {
	kind optKind
	id   uint8
	cost uint8 // 1: a preemption
}

// enabled reports whether the thread can take a step.
func (t *thread) enabled() bool {
	if t.status != ready || t.guard != nil && t.barred() {
		return false
	}
	if t.after != nil {
		if a := t.after; a.status == ready && !a.yielded {
			return false
		}
		t.after = nil
	}
	return t.pins > 0 || t.e.pinned < len(t.e.procs)
}

// gather lists what can happen next. The first entry is what happens if nobody has an opinion: the thread that ran last
// goes on. Entries that would be one preemption too many are left out.
func (e *engine) gather() {
	e.opts = e.opts[:0]
	last := e.last
	lastOn := last != nil && !last.yielded && last.enabled()
	if lastOn {
		e.opts = append(e.opts, option{optThread, uint8(last.id), 0})
	}
	cost := uint8(0)
	if lastOn && !last.free {
		cost = 1
	}
	if cost == 0 || e.bound < 0 || e.used < e.bound {
		e.gatherOthers(cost, false)
		if len(e.opts) == 0 && e.yielded > 0 {
			e.gatherOthers(0, true)
		}
	}
	if e.mode != SC {
		for _, t := range e.threads[:e.n] {
			if len(t.buf) > 0 {
				e.opts = append(e.opts, option{optDrain, uint8(t.id), 0})
			}
			if e.ipis[t.id] != 0 {
				e.opts = append(e.opts, option{optIPI, uint8(t.id), 0})
			}
		}
	}
	e.gatherTime()
	if len(e.opts) == 0 {
		for _, t := range e.threads[:e.n] { // nobody can run: those who spin try once more
			if t.status == paused {
				e.opts = append(e.opts, option{optThread, uint8(t.id), 0})
			}
		}
	}
}

// gatherOthers lists the threads that can run, beginning after the last one: those that have yielded or those that have not.
func (e *engine) gatherOthers(cost uint8, yielded bool) {
	start := 0
	if e.last != nil {
		start = e.last.id + 1
	}
	for i := range e.n {
		id := start + i
		if id >= e.n {
			id -= e.n
		}
		if t := e.threads[id]; t.yielded == yielded && (t != e.last || yielded) && t.enabled() {
			e.opts = append(e.opts, option{optThread, uint8(id), cost})
		}
	}
}

// check asks Program.Check. False: the schedule is over.
func (e *engine) check() bool {
	if e.prog.Check == nil {
		return true
	}
	runner := e.cur
	e.cur = nil // Check acts outside of the schedule
	err := e.prog.Check()
	e.cur = runner
	if err != nil {
		e.failWith(KindCheck, err.Error())
	}
	return err == nil
}

func (e *engine) tooLong() string { return fmt.Sprintf("not finished after %d steps", e.opt.MaxSteps) }

// schedule decides what happens next, lets it happen as far as it is not a thread, and returns the thread that runs next;
// nil: the schedule is over.
func (e *engine) schedule() *thread {
	runner := e.cur
	e.cur = nil
	t := e.decide()
	e.cur = runner
	return t
}

func (e *engine) decide() *thread {
	for !e.over {
		if !e.check() {
			return nil
		}
		e.gather()
		if len(e.opts) == 0 {
			e.settle()
			return nil
		}
		if e.steps++; e.steps > e.opt.MaxSteps {
			e.failWith(KindLivelock, e.tooLong())
			return nil
		}
		i := e.strat.pick(e)
		if i < 0 {
			e.pruned, e.over = true, true
		}
		if e.over {
			return nil
		}
		o := e.opts[i]
		e.used += int(o.cost)
		e.record(o.kind, int(o.id))
		if t := e.perform(o); t != nil {
			return t
		}
	}
	return nil
}

// perform lets an option happen; the result is the thread that runs next, if it is one.
func (e *engine) perform(o option) *thread {
	switch o.kind {
	case optDrain:
		e.threads[o.id].drain()
		return nil
	case optIPI:
		e.interrupt(e.threads[o.id])
		return nil
	case optTimer:
		return e.fire(int(o.id))
	case optLate:
		return e.expire(e.threads[o.id])
	case optTick:
		e.tick(e.threads[o.id])
		return nil
	}
	t := e.threads[o.id]
	if t.status == paused || t.yielded {
		t.status = ready
		if e.spun(t) {
			return nil
		}
	}
	e.ran(t)
	return t
}

// spun counts a resumption in vain; true: it was one too many.
func (e *engine) spun(t *thread) bool {
	t.hash = mix(t.hash, 3)
	if e.futile++; e.futile > e.opt.Spins {
		e.failWith(KindLivelock, "every thread that can run spins on words that nobody writes\n"+e.standing())
		return true
	}
	return false
}

// ran records that t takes the next step.
func (e *engine) ran(t *thread) {
	e.last = t
	t.free = false
	if e.yielded > 0 {
		e.yielded = 0
		for _, o := range e.threads[:e.n] {
			o.yielded = false
		}
	}
}

// choose asks the strategy for a number below n in the middle of an operation. Any but 0 costs so many preemptions.
func (e *engine) choose(n, cost int) int {
	if n < 2 || cost > 0 && e.bound >= 0 && e.used+cost > e.bound {
		return 0
	}
	k := e.strat.value(e, n)
	if k > 0 {
		e.used += cost
	}
	e.record(optValue, k)
	return k
}

// settle ends a schedule in which nothing can happen any more.
func (e *engine) settle() {
	for _, t := range e.threads[:e.n] {
		if t.status != done {
			e.failWith(KindDeadlock, "nobody can run\n"+e.standing())
			return
		}
	}
	e.over = true
}

// standing says what each thread that has not ended waits for.
func (e *engine) standing() string {
	var b strings.Builder
	for _, t := range e.threads[:e.n] {
		if t.status == done {
			continue
		}
		switch {
		case t.guard != nil:
			fmt.Fprintf(&b, "  %s waits since step %d", t.name, t.where)
		case t.status == ready:
			fmt.Fprintf(&b, "  %s can run", t.name)
		default:
			fmt.Fprintf(&b, "  %s %s (%s) since step %d", t.name, t.status, t.why, t.where)
		}
		if t.on != nil {
			fmt.Fprintf(&b, " at %s of %s", t.op, e.nameWord(t.on))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// key identifies the present point of the schedule for the reduction. What is not in it follows from what is: the hash of
// a thread fixes everything it did and saw, the sum of the histories fixes which buffered stores have drained.
func (e *engine) key() uint64 {
	k := mix(e.clock.key(), e.fences)
	if e.bound >= 0 && e.last != nil && !e.last.free && !e.last.yielded && e.last.enabled() {
		k = mix(k, uint64(e.last.id)+1)
	}
	for _, t := range e.threads[:e.n] {
		k = mix(k, t.hash)
		s := uint64(t.status) | uint64(t.p+1)<<8 | uint64(t.pins)<<16
		if t.yielded {
			s |= 1 << 32
		}
		if t.skip {
			s |= 1 << 33
		}
		s |= uint64(t.going) << 36
		if t.after != nil {
			s |= uint64(t.after.id+1) << 40
		}
		if t.limited {
			s |= 1 << 35
			k = mix(k, uint64(t.until))
		}
		k = mix(k, s)
	}
	for _, t := range e.procs {
		if t != nil {
			k = mix(k, uint64(t.id)+1)
		} else {
			k = mix(k, 0)
		}
	}
	k = mix(k, uint64(e.futile)|uint64(e.ticks)<<32)
	if e.byState {
		return mix(k, e.contents())
	}
	return mix(k, e.sum)
}

// contents is the hash of everything shared, for ByState.
func (e *engine) contents() uint64 {
	var sum uint64
	for _, w := range e.words[:e.nw] {
		v := w.peek()
		if v.p != nil {
			v.n = e.nameOf(v.p)
		}
		if v.n != 0 {
			sum += mix(w.place, v.n)
		}
	}
	h := Hash{sum}
	for _, t := range e.threads[:e.n] {
		for _, s := range t.buf {
			n := s.v.n
			if s.v.p != nil {
				n = e.nameOf(s.v.p)
			}
			h.Add(mix(s.w.place, n))
		}
		h.Add(uint64(t.id))
		if t.status == fencing {
			for _, o := range e.threads[:e.n] {
				h.Add(max(t.goals[o.id], o.drains) - o.drains)
			}
		}
	}
	if e.prog.State != nil {
		e.prog.State(&h)
	}
	return h.sum
}
