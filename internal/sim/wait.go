//go:build sim

package sim

import (
	"runtime"
	"time"
)

// readSet is what a thread has read since it last paused: the words that decide whether its loop goes round once more.
type readSet struct {
	n    int
	over bool // more words than the set holds
	time bool // the clock is among them
	r    [8]readWord
}

type readWord struct {
	w       *word
	v       value
	version uint32
}

func (s *readSet) clear() { s.n, s.over, s.time = 0, false, false }

func (s *readSet) add(w *word, v value) {
	for i := range s.r[:s.n] {
		if s.r[i].w == w {
			s.r[i] = readWord{w, v, w.version}
			return
		}
	}
	if s.n == len(s.r) {
		s.over = true
		return
	}
	s.r[s.n] = readWord{w, v, w.version}
	s.n++
}

// Pause is the body of a spin loop. The thread does not run again until one of the words that it has read since its last
// Pause is written; if one was written since it read it, it goes on at once. A loop that gives up after some rounds is
// let go on when nobody else can run (Options.Spins times in a row, then it is a livelock); one that gives up at a time it
// read from Nanotime may also be let go on by the clock (Options.Ticks). Keep spin budgets under simulation at one or
// two rounds, or ask Choose whether to give up: giving up while others can run is found only that way.
func Pause() {
	t := current()
	if t == nil {
		runtime.Gosched()
		return
	}
	if t.cost != nil {
		t.cost.pause()
		return
	}
	e := t.e
	if e.over {
		panic(errAborted{})
	}
	t.op, t.on = opPause, nil
	t.advance(opPause)
	s := &t.reads
	changed := s.over
	for i := range s.r[:s.n] {
		if t.moved(&s.r[i]) {
			changed = true
		}
	}
	if !changed {
		for i := range s.r[:s.n] {
			s.r[i].w.waiters |= 1 << t.id
		}
		t.block(paused, "spins")
	} else if s.over {
		t.giveTurn()
	}
	s.clear()
}

// moved reports whether the word has been written since it was read. Under AcqRel it also sees to it that a thread does not
// spin on an outdated value for ever.
func (t *thread) moved(r *readWord) bool {
	e := t.e
	if e.mode == AcqRel {
		if seen := t.seen.at(r.w.id); int(seen) < len(r.w.msgs)-1 {
			t.seen.raise(r.w.id, seen+1)
			return true
		}
	}
	if e.byState { // contents count, not how they came about
		return t.sight(r.w) != r.v
	}
	return r.w.version != r.version
}

// sight is what the thread would read now, outside of AcqRel; it is no observation.
func (t *thread) sight(w *word) value {
	for i := len(t.buf) - 1; i >= 0; i-- {
		if t.buf[i].w == w {
			return t.buf[i].v
		}
	}
	return w.peek()
}

// WaitWhileEqual32 waits until the word differs from v and returns what it is then: acquire loads in a loop that nobody sees.
func WaitWhileEqual32(x *Uint32, v uint32) uint32 {
	if t := current(); t != nil {
		return uint32(t.awaitNot(addr32(&x.v), word32, u32(v)).n)
	}
	for {
		if now := x.v.Load(); now != v {
			return now
		}
		runtime.Gosched()
	}
}

// WaitWhileEqual64 is WaitWhileEqual32 for 64 bits.
func WaitWhileEqual64(x *Uint64, v uint64) uint64 {
	if t := current(); t != nil {
		return t.awaitNot(addr64(&x.v), word64, u64(v)).n
	}
	for {
		if now := x.v.Load(); now != v {
			return now
		}
		runtime.Gosched()
	}
}

// WaitWhileEqualFor32 is WaitWhileEqual32 with a limit: it returns v when the time is over. In a run that may be at any
// scheduling point.
func WaitWhileEqualFor32(x *Uint32, v uint32, d time.Duration) uint32 {
	if t := current(); t != nil {
		t.limit(d)
		now := t.awaitNot(addr32(&x.v), word32, u32(v))
		t.limited, t.late = false, false
		return uint32(now.n)
	}
	for end := time.Now().Add(d); ; runtime.Gosched() {
		if now := x.v.Load(); now != v || time.Now().After(end) {
			return now
		}
	}
}

// awaitNot is one load that takes place when the word is not v, or when the time limit is over.
func (t *thread) awaitNot(a addr, wd width, v value) value {
	if t.cost != nil {
		return t.cost.awaitNot(a, wd, v)
	}
	w := t.e.word(a, wd)
	t.guardedPoint(opWait, w, v)
	t.use(w)
	var now value
	if t.e.mode == AcqRel && !t.late {
		i := t.other(w, v, t.e.choose(t.others(w, v), 0))
		t.learn(w, i, acqrel)
		now = w.msgs[i].v
	} else {
		now = t.read(w, acqrel)
	}
	t.reads.clear()
	if t.e.tracing {
		t.e.note(t, w, now, now, "")
	}
	return now
}

// others counts the messages of w that are not v and that the thread may still read.
func (t *thread) others(w *word, v value) (n int) {
	for i := int(t.seen.at(w.id)); i < len(w.msgs); i++ {
		if w.msgs[i].v != v {
			n++
		}
	}
	return n
}

// other returns the index of the k-th of them, the newest being the 0th.
func (t *thread) other(w *word, v value, k int) int {
	for i := len(w.msgs) - 1; ; i-- {
		if w.msgs[i].v != v {
			if k == 0 {
				return i
			}
			k--
		}
	}
}

// BackOff is n rounds of a wait that does not look at anything. Only in a cost model does it take time; elsewhere it is
// Pause.
func BackOff(n uint32) {
	if t := current(); t != nil && t.cost != nil {
		t.cost.backOff(n)
		return
	}
	Pause()
}

// Yield lets others run: runtime.Gosched, osyield. It drains the store buffer.
func Yield() {
	t := current()
	if t == nil {
		runtime.Gosched()
		return
	}
	if t.cost != nil {
		t.cost.yieldCPU()
		return
	}
	t.point(opYield, nil)
	t.e.note(t, nil, value{}, value{}, "")
	t.drainAll()
	t.giveTurn()
	t.reads.clear()
}

// giveTurn lets another thread run first, if one can.
func (t *thread) giveTurn() {
	e := t.e
	if t.nosched > 0 {
		return
	}
	t.yielded, t.free = true, true
	e.yielded++
	t.giveWay(e.schedule())
	t.advance(opYield)
	t.skip = true
}

// put writes an object.
func (t *thread) put(w *word, n uint64, note string) {
	e := t.e
	old := w.obj
	t.hash = mix(t.hash, n+5)
	e.commit(w, value{n: n}, t.hash)
	e.note(t, w, value{n: old}, value{n: n}, note)
}
