//go:build sim

package sim

import "reflect"

// Most loads of real code are of words that nobody writes while a program runs: the pointer to a table, a mark, a flag that is
// never set. An exhaustive search needs no scheduling point before them: such a load commutes with every step of the
// others, so each schedule is equal to one in which it follows its thread's last operation at once, and that one has no
// more preemptions. The same holds for the words of an object that its thread has just made and shown to nobody.
//
// Which words are never written is learned. A word has a kind, the same in every schedule: the place in an object that Setup
// named, or in an object of some type that a Quarantine handed out. A kind counts as still until a thread writes such a
// word; what was explored until then is forgotten. The argument holds at the end, when no schedule has written a still
// word: take a schedule that would, up to that write; before it the loads commute, so the search has seen the write.
//
// An object from a Quarantine is its thread's own until the next operation of the thread that is not a load, a write of the
// object's own words aside. Whoever finds the object has to synchronize with such an operation.
//
// Steps are counted and recorded as if the scheduling points were there, so that a schedule can be replayed with all of them.

// stillness is the part of the engine that knows of still words.
type stillness struct {
	quiet   bool // loads of still words are no scheduling points
	written map[kind]bool
	refuted bool // a word that counted as still has been written
	named   int  // names[:named] are from Setup
	fresh   []freshObject
}

// kind stands for the same word, or for words in the same role, in every schedule. The zero value is none.
type kind struct {
	name   int          // 1 + index in engine.names, or
	typ    reflect.Type // type of the object
	offset uintptr
}

// freshObject is an object that a Quarantine handed out in this schedule.
type freshObject struct {
	span
	typ   reflect.Type
	owner *thread
	stamp uint64 // the owner's, when it was made
}

func (e *engine) kindOf(a addr) kind {
	for i := e.named - 1; i >= 0; i-- {
		if n := &e.names[i]; n.holds(a) {
			return kind{name: i + 1, offset: uintptr(a) - uintptr(n.base)}
		}
	}
	for i := range e.fresh {
		if o := &e.fresh[i]; o.holds(a) {
			return kind{typ: o.typ, offset: uintptr(a) - uintptr(o.base)}
		}
	}
	return kind{}
}

// settleKind completes a new word.
func (e *engine) settleKind(w *word) {
	if !e.quiet && e.prog.Watch == nil {
		return
	}
	w.kind = e.kindOf(w.at)
	w.still = e.quiet && w.kind != kind{} && !e.written[w.kind]
	for i := range e.fresh {
		if o := &e.fresh[i]; o.holds(w.at) {
			w.maker, w.stamp = o.owner, o.stamp
		}
	}
}

// own reports whether nobody else can know the word yet.
func (t *thread) own(w *word) bool { return t.e.quiet && w.maker == t && w.stamp == t.stamp }

// writes records that t, which has just passed a scheduling point, writes w.
func (t *thread) writes(w *word) {
	e := t.e
	if !e.quiet || w.kind == (kind{}) || e.written[w.kind] {
		return
	}
	e.written[w.kind] = true
	e.refuted = true
}

// begin is what comes before an operation on w: a scheduling point if it can make a difference.
func (t *thread) begin(op opcode, w *word) {
	if t.own(w) || w.still && op.reads() {
		t.follow(op, w)
	} else {
		t.point(op, w)
	}
}

func (op opcode) reads() bool { return op == opLoad || op == opLoadPlain || op == opLoadAcquire }

// follow lets the thread go on with op as if it had been chosen at a scheduling point.
func (t *thread) follow(op opcode, w *word) {
	e := t.e
	if e.over {
		panic(errAborted{})
	}
	t.op, t.on = op, w
	switch {
	case t.nosched > 0:
	case t.skip:
		t.skip, t.joined = false, true
	default:
		t.count()
	}
	t.advance(op)
}

// count records a step without a scheduling point.
func (t *thread) count() {
	e := t.e
	if !e.check() {
		panic(errAborted{})
	}
	if e.steps++; e.steps > e.opt.MaxSteps {
		t.fail(KindLivelock, e.tooLong())
	}
	e.record(optThread, t.id)
}

// made records that t has made the object at s.
func (t *thread) made(s span, typ reflect.Type) {
	if e := t.e; e.quiet || e.prog.Watch != nil {
		e.fresh = append(e.fresh, freshObject{s, typ, t, t.stamp})
	}
}
