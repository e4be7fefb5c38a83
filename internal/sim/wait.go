//go:build sim

package sim

import (
	"fmt"
	"runtime"
	"sync"
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

// sight is what the thread would read now, outside of AcqRel.
func (t *thread) sight(w *word) value {
	for i := len(t.buf) - 1; i >= 0; i-- {
		if t.buf[i].w == w {
			return t.buf[i].v
		}
	}
	return w.peek()
}

// WaitWhileEqual32 returns when the word differs from v: an acquire load in a loop that nobody sees.
func WaitWhileEqual32(x *Uint32, v uint32) {
	t := current()
	if t == nil {
		for x.v.Load() == v {
			runtime.Gosched()
		}
		return
	}
	for uint32(t.load(addr32(&x.v), word32, opWait, acqrel).n) == v {
		t.await(t.on)
	}
	t.reads.clear()
}

// WaitWhileEqual64 is WaitWhileEqual32 for 64 bits.
func WaitWhileEqual64(x *Uint64, v uint64) {
	t := current()
	if t == nil {
		for x.v.Load() == v {
			runtime.Gosched()
		}
		return
	}
	for t.load(addr64(&x.v), word64, opWait, acqrel).n == v {
		t.await(t.on)
	}
	t.reads.clear()
}

// await blocks until w is written.
func (t *thread) await(w *word) {
	if t.e.mode == AcqRel {
		if seen := t.seen.at(w.id); int(seen) < len(w.msgs)-1 {
			t.seen.raise(w.id, seen+1)
			return
		}
	}
	w.waiters |= 1 << t.id
	t.block(waiting, "for a change")
}

// Yield lets others run: runtime.Gosched, osyield. It drains the store buffer.
func Yield() {
	t := current()
	if t == nil {
		runtime.Gosched()
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

// A Parker blocks one thread until another one says so. The zero value is ready for use. Each Park takes exactly one
// Unpark, which may come first.
type Parker struct {
	real Semaphore
}

const (
	parkerIdle  = 0
	parkerToken = 1
	parkerTaken = 2
)

// Park waits for Unpark. The reason appears in reports. To park while pinned is an error.
func (p *Parker) Park(reason string) {
	t := current()
	if t == nil {
		p.real.Acquire()
		return
	}
	e := t.e
	w := e.word(addr(p), object)
	t.point(opPark, w)
	t.use(w)
	t.unpinnedFor("Park")
	t.drainAll()
	switch w.obj {
	case parkerToken:
		t.observe(value{n: w.obj}, w.history)
		t.put(w, parkerIdle, "token was there")
	case parkerTaken:
		t.fail(KindMisuse, fmt.Sprintf("%s parks on a parker on which %s is parked", t.name, w.holder.name))
	default:
		t.put(w, parkerTaken, reason)
		w.holder = t
		t.block(parked, reason)
		t.observe(value{n: parkerTaken}, w.history)
		e.note(t, w, value{n: parkerIdle}, value{n: parkerIdle}, "woken")
	}
	t.reads.clear()
}

// Unpark lets the present or the next Park return.
func (p *Parker) Unpark() {
	t := current()
	if t == nil {
		p.real.Release()
		return
	}
	e := t.e
	w := e.word(addr(p), object)
	t.point(opUnpark, w)
	t.use(w)
	t.drainAll()
	t.observe(value{n: w.obj}, w.history)
	switch w.obj {
	case parkerToken:
		t.fail(KindMisuse, t.name+" unparks twice")
	case parkerTaken:
		h := w.holder
		t.put(w, parkerIdle, h.name)
		w.holder = nil
		h.status = ready
		if e.opt.Ready == RunNext {
			h.after = t
		}
	default:
		t.put(w, parkerToken, "before Park")
	}
}

// put writes an object.
func (t *thread) put(w *word, n uint64, note string) {
	e := t.e
	old := w.obj
	t.hash = mix(t.hash, n+5)
	e.commit(w, value{n: n}, t.hash)
	e.note(t, w, value{n: old}, value{n: n}, note)
}

// A Mutex stands for a sync.Mutex inside the code under test. It must be unlocked when a schedule begins.
type Mutex struct {
	real sync.Mutex
}

// Lock locks m.
func (m *Mutex) Lock() {
	t := current()
	if t == nil {
		m.real.Lock()
		return
	}
	w := t.e.word(addr(m), object)
	t.point(opLock, w)
	t.use(w)
	t.drainAll()
	for w.obj != 0 {
		t.await(w)
	}
	t.skip = false
	t.observe(value{}, w.history)
	t.put(w, 1, "")
}

// TryLock locks m if it is free.
func (m *Mutex) TryLock() bool {
	t := current()
	if t == nil {
		return m.real.TryLock()
	}
	w := t.e.word(addr(m), object)
	t.point(opTryLock, w)
	t.use(w)
	t.drainAll()
	t.observe(value{n: w.obj}, w.history)
	if w.obj != 0 {
		t.e.note(t, w, value{n: 1}, value{n: 1}, failed)
		return false
	}
	t.put(w, 1, "")
	return true
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	t := current()
	if t == nil {
		m.real.Unlock()
		return
	}
	w := t.e.word(addr(m), object)
	t.point(opUnlock, w)
	t.use(w)
	t.drainAll()
	if w.obj == 0 {
		t.fail(KindMisuse, t.name+" unlocks an unlocked mutex")
	}
	t.put(w, 0, "")
}

// A Semaphore counts permits; the zero value has none.
type Semaphore struct {
	n    Uint32
	mu   sync.Mutex // outside a run
	cond sync.Cond
}

// Acquire takes a permit and waits for one if there is none.
func (s *Semaphore) Acquire() {
	if current() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cond.L = &s.mu
		for s.n.v.Load() == 0 {
			s.cond.Wait()
		}
		s.n.v.Add(^uint32(0))
		return
	}
	for {
		if n := s.n.Load(); n == 0 {
			WaitWhileEqual32(&s.n, 0)
		} else if s.n.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// Release gives a permit back.
func (s *Semaphore) Release() {
	if current() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cond.L = &s.mu
		s.n.v.Add(1)
		s.cond.Signal()
		return
	}
	s.n.Add(1)
}
