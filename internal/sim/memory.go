//go:build sim

package sim

import (
	"fmt"
	"math/bits"
)

// mix folds b into a. Neither 0 nor order is lost.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// Hash collects what Program.State adds.
type Hash struct{ sum uint64 }

// Add adds one value; order matters.
func (h *Hash) Add(v uint64) { h.sum = mix(h.sum, v) }

// word is what the engine knows about one shared word.
type word struct {
	at    addr
	width width
	id    int
	place uint64 // ByState: its name as a number, the same in every schedule

	// history stands for the sequence of writes, each with everything its thread had observed by then: two schedules
	// in which it is equal wrote the word by the same operations in the same order.
	history  uint64
	version  uint32 // number of writes
	waiters  uint32 // bit i: thread i is blocked until the next write
	poisoned bool
	still    bool // nobody is known to write it; see stillness
	kind     kind
	maker    *thread // of the object that it is in
	stamp    uint64
	msgs     []message // AcqRel: all values, oldest first

	obj    uint64  // contents, if width is object
	holder *thread // object: the parked thread
}

// store is a write that sits in a store buffer.
type store struct {
	w    *word
	v    value
	hash uint64
	by   []uintptr // who wrote, if Program.AskBy
}

// message is one value of a word under AcqRel.
type message struct {
	v    value
	hash uint64
	view view // what a reader that acquires learns; nil: nothing
}

// view maps the id of a word to the index of the oldest message that may be read.
type view []uint32

func (v view) at(id int) uint32 {
	if id < len(v) {
		return v[id]
	}
	return 0
}

func (v *view) raise(id int, to uint32) {
	for len(*v) <= id {
		*v = append(*v, 0)
	}
	(*v)[id] = max((*v)[id], to)
}

func (v *view) join(o view) {
	for id, to := range o {
		v.raise(id, to)
	}
}

func (v view) clone() view { return append(make(view, 0, len(v)), v...) }

// memory is the part of the engine that holds the words.
type memory struct {
	mode    Memory
	byState bool

	table []slot // open addressing, keyed by address
	mask  uintptr
	epoch uint32
	words []*word // words[:nw] belong to this schedule, in order of first use
	nw    int

	sum    uint64             // of the histories of all words
	order  view               // AcqRel: what fences and sequentially consistent writes have published
	fences uint64             // hash of the same
	ipis   [maxThreads]uint32 // AcqRel: bit i: thread i waits for its heavy fence to reach this thread
}

type slot struct {
	at    uintptr
	epoch uint32
	w     *word
}

func (m *memory) init(mode Memory, r Reduction) {
	m.mode, m.byState = mode, r == ByState
	m.table = make([]slot, 256)
	m.mask = uintptr(len(m.table) - 1)
}

func (m *memory) reset() {
	m.epoch++
	for _, w := range m.words[:m.nw] {
		w.at, w.holder, w.maker = nil, nil, nil // let the garbage collector have the last schedule's objects
	}
	m.nw, m.sum, m.fences = 0, 0, 0
	m.order = m.order[:0]
	m.ipis = [maxThreads]uint32{}
}

func (m *memory) find(key uintptr) *slot {
	for i := (key >> 2) * 0x9e3779b1 >> 7; ; i++ {
		s := &m.table[i&m.mask]
		if s.epoch != m.epoch || s.at == key {
			return s
		}
	}
}

// word returns the record of the word at a, making it at first use.
func (e *engine) word(a addr, wd width) *word {
	m := &e.memory
	key := uintptr(a)
	s := m.find(key)
	if s.epoch == m.epoch {
		return s.w
	}
	if m.nw*2 > len(m.table) {
		m.grow()
		s = m.find(key)
	}
	if m.nw == len(m.words) {
		m.words = append(m.words, new(word))
	}
	w := m.words[m.nw]
	*w = word{at: a, width: wd, id: m.nw, msgs: w.msgs[:0]}
	m.nw++
	*s = slot{key, m.epoch, w}
	e.register(w)
	return w
}

func (m *memory) grow() {
	m.table = make([]slot, 2*len(m.table))
	m.mask = uintptr(len(m.table) - 1)
	for _, w := range m.words[:m.nw] {
		key := uintptr(w.at)
		*m.find(key) = slot{key, m.epoch, w}
	}
}

// register completes a new word: its name, whether it lies in poisoned memory, its first message.
func (e *engine) register(w *word) {
	for _, p := range e.poisoned {
		if p.holds(w.at) {
			w.poisoned, w.history = true, p.hash
			e.sum += p.hash
		}
	}
	if e.byState {
		w.place = e.place(w)
	}
	e.settleKind(w)
	if e.mode == AcqRel {
		w.msgs = append(w.msgs, message{v: w.peek()})
	}
}

// order says what an access promises beyond being one access.
type order uint8

const (
	relaxed order = iota // plain
	acqrel               // acquire if a load, release if a store
	seqcst               // sync/atomic
)

// observe folds into the thread's hash that it read v, which the write with this hash left.
func (t *thread) observe(v value, hash uint64) {
	if t.e.byState {
		hash = v.n
		if v.p != nil {
			hash = t.e.nameOf(v.p)
		}
	}
	t.hash = mix(t.hash, hash)
}

// commit makes v the value of w for everybody. hash names the write.
func (e *engine) commit(w *word, v value, hash uint64) {
	if e.prog.Watch != nil {
		e.watch(w, v, nil)
	}
	e.write(w, v, hash)
}

func (e *engine) write(w *word, v value, hash uint64) {
	w.poke(v)
	e.sum -= w.history
	w.history = mix(w.history, hash)
	e.sum += w.history
	e.changed(w)
}

// changed wakes whoever waits for a change of w.
func (e *engine) changed(w *word) {
	w.version++
	e.futile = 0
	for m := w.waiters; m != 0; m &= m - 1 {
		t := e.threads[bits.TrailingZeros32(m)]
		if t.status == paused {
			t.status = ready
		}
	}
	w.waiters = 0
}

// use checks that the word may be touched.
func (t *thread) use(w *word) {
	if w.poisoned {
		t.fail(KindPoison, fmt.Sprintf("%s: %s of %s, which is poisoned", t.name, t.op, t.e.nameWord(w)))
	}
}

// load is every kind of load.
func (t *thread) load(a addr, wd width, op opcode, o order) value {
	if t.cost != nil {
		return t.cost.load(a, wd)
	}
	w := t.e.word(a, wd)
	t.begin(op, w)
	t.use(w)
	v := t.read(w, o)
	t.reads.add(w, v)
	if t.e.tracing {
		t.e.note(t, w, v, v, "")
	}
	return v
}

// store is every kind of store.
func (t *thread) store(a addr, wd width, v value, op opcode, o order) {
	switch {
	case t.cost == nil:
	case o == seqcst: // an exchange
		t.cost.update(a, wd, opSwap, v, value{})
		return
	default:
		t.cost.store(a, wd, wholeWord, v)
		return
	}
	e := t.e
	w := e.word(a, wd)
	own := t.own(w)
	t.begin(op, w)
	t.use(w)
	if !own {
		t.writes(w)
	}
	old := w.peek()
	note := ""
	switch {
	case e.mode == TSO && o != seqcst:
		t.buf = append(t.buf, store{w: w, v: v, hash: t.hash})
		if e.prog.AskBy {
			t.buf[len(t.buf)-1].by = callers()
		}
		note = "into the store buffer"
	case e.mode == AcqRel:
		t.publish(w, v, o)
	default:
		t.drainAll()
		e.commit(w, v, t.hash)
	}
	if e.tracing {
		e.note(t, w, old, v, note)
	}
}

// update is every read-modify-write: f is one of the opcodes below with operands x and y. It returns the old value and
// whether it wrote.
func (t *thread) update(a addr, wd width, op opcode, x, y value) (value, bool) {
	if t.cost != nil {
		return t.cost.update(a, wd, op, x, y)
	}
	e := t.e
	w := e.word(a, wd)
	own := t.own(w)
	t.begin(op, w)
	t.use(w)
	t.drainAll()
	old := w.peek()
	v, write := op.apply(old, x, y)
	if write && !own {
		t.writes(w)
	}
	if wd == word32 {
		v.n = uint64(uint32(v.n))
	}
	if e.mode == AcqRel {
		t.acquireLatest(w)
	} else {
		t.observe(old, w.history)
	}
	if write {
		if e.mode == AcqRel {
			t.publish(w, v, seqcst)
		} else {
			e.commit(w, v, t.hash)
		}
	}
	t.reads.add(w, w.peek())
	if e.tracing {
		note := ""
		if !write {
			note = failed
			v = old
		}
		e.note(t, w, old, v, note)
	}
	return old, write
}

// apply computes what a read-modify-write leaves; false: nothing is written.
func (op opcode) apply(old, x, y value) (value, bool) {
	switch op {
	case opSwap:
		return x, true
	case opCAS:
		return y, old == x
	case opAdd:
		return value{n: old.n + x.n}, true
	case opAnd:
		return value{n: old.n & x.n}, true
	case opOr:
		return value{n: old.n | x.n}, true
	}
	panic("sim: no such read-modify-write")
}

// read returns what the thread sees of w.
func (t *thread) read(w *word, o order) value {
	switch t.e.mode {
	case TSO:
		for i := len(t.buf) - 1; i >= 0; i-- {
			if s := &t.buf[i]; s.w == w {
				t.observe(s.v, s.hash)
				return s.v
			}
		}
	case AcqRel:
		return t.readMessage(w, o)
	}
	v := w.peek()
	t.observe(v, w.history)
	return v
}

// --- TSO

// drain moves the oldest entry of the thread's store buffer to memory.
func (t *thread) drain() {
	e := t.e
	s := t.buf[0]
	old := s.w.peek()
	copy(t.buf, t.buf[1:])
	t.buf = t.buf[:len(t.buf)-1]
	t.drains++
	if e.prog.Watch != nil {
		e.watch(s.w, s.v, s.by)
	}
	e.write(s.w, s.v, s.hash)
	if e.tracing {
		e.noteDrain(t, s.w, old, s.v)
	}
	for _, f := range e.threads[:e.n] {
		if f.status == fencing && e.drainedFor(f) {
			f.status = ready
		}
	}
}

func (t *thread) drainAll() {
	for len(t.buf) > 0 {
		t.drain()
	}
}

// drainedFor reports whether the stores that other threads had buffered when f began its heavy fence have drained. That is
// the weakest an interrupt can do that comes to each CPU at a moment of its own between call and return: whatever a later
// interrupt would drain on top, the buffer may drain by itself.
func (e *engine) drainedFor(f *thread) bool {
	for _, t := range e.threads[:e.n] {
		if t != f && t.drains < f.goals[t.id] {
			return false
		}
	}
	return true
}

// awaitDrains is HeavyFence under TSO.
func (t *thread) awaitDrains() {
	e := t.e
	t.drainAll()
	t.goals = [maxThreads]uint64{} // it does not wait for threads that start later
	for _, o := range e.threads[:e.n] {
		t.goals[o.id] = o.drains + uint64(len(o.buf))
		if !e.byState { // how far the others were is an observation
			t.hash = mix(t.hash, t.goals[o.id])
		}
	}
	if !e.drainedFor(t) {
		t.block(fencing, "HeavyFence")
	}
}

// --- AcqRel

// readMessage chooses among the messages of w that the thread may still see.
func (t *thread) readMessage(w *word, o order) value {
	e := t.e
	oldest := t.seen.at(w.id)
	if o == seqcst {
		oldest = max(oldest, e.order.at(w.id))
	}
	i := len(w.msgs) - 1
	if n := len(w.msgs) - int(oldest); n > 1 {
		i -= e.choose(n, 0)
	}
	t.learn(w, i, o)
	return w.msgs[i].v
}

// learn records that the thread has read message i of w.
func (t *thread) learn(w *word, i int, o order) {
	m := &w.msgs[i]
	t.seen.raise(w.id, uint32(i))
	if o != relaxed {
		t.seen.join(m.view)
	}
	t.observe(m.v, m.hash)
}

// acquireLatest is the reading half of a read-modify-write, which always reads the latest value.
func (t *thread) acquireLatest(w *word) { t.learn(w, len(w.msgs)-1, seqcst) }

// publish appends a message. New values always come last in the order of their word.
func (t *thread) publish(w *word, v value, o order) {
	e := t.e
	i := uint32(len(w.msgs))
	t.seen.raise(w.id, i)
	m := message{v: v, hash: t.hash}
	if o != relaxed {
		m.view = t.seen.clone()
	}
	w.msgs = append(w.msgs, m)
	if o == seqcst {
		e.order.raise(w.id, i)
		e.fences += mix(t.hash, uint64(w.id)+1)
	}
	e.commit(w, v, t.hash)
}

// fence orders everything before it with everything after it: the two halves of a sequentially consistent fence.
func (t *thread) fence() {
	e := t.e
	t.hash = mix(t.hash, e.fences)
	t.seen.join(e.order)
	e.order.join(t.seen)
	e.fences += mix(t.hash, 2)
}

// interruptAll is HeavyFence under AcqRel: every other thread passes a fence at a moment of its own.
func (t *thread) interruptAll() {
	e := t.e
	t.fence()
	for _, o := range e.threads[:e.n] {
		if o != t {
			e.ipis[o.id] |= 1 << t.id
		}
	}
	if e.n > 1 {
		t.block(fencing, "HeavyFence")
		t.fence()
	}
}

// interrupt delivers the heavy fences that wait for t.
func (e *engine) interrupt(t *thread) {
	by := e.ipis[t.id]
	e.ipis[t.id] = 0
	t.fence()
	for _, f := range e.threads[:e.n] {
		if by&(1<<f.id) != 0 && !e.interrupting(f) {
			f.status = ready
		}
	}
	if e.tracing {
		e.noteText(t, "interrupted by a heavy fence")
	}
}

func (e *engine) interrupting(f *thread) bool {
	for _, by := range e.ipis[:e.n] {
		if by&(1<<f.id) != 0 {
			return true
		}
	}
	return false
}
