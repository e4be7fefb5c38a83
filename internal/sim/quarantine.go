//go:build sim

package sim

import "reflect"

// poison makes the words in s unusable. It counts as a write of each of them, so that a use before and a use after are
// different for the reductions.
func (t *thread) poison(s span) {
	e := t.e
	s.hash = t.hash
	e.poisoned = append(e.poisoned, s)
	for _, w := range e.words[:e.nw] {
		if s.holds(w.at) {
			w.poisoned = true
			e.commit(w, w.peek(), t.hash)
			e.note(t, w, value{}, value{}, "")
		}
	}
}

// A Quarantine stands for a free list: what is put into it is poisoned and never handed out again in the same run. Outside
// a run it hands out new objects and forgets those that come back.
type Quarantine[T any] struct{}

// Get returns a new object.
func (Quarantine[T]) Get() *T {
	p := new(T)
	if t := current(); t != nil {
		t.made(span{base: addr(p), size: reflect.TypeFor[T]().Size()}, reflect.TypeFor[T]())
	}
	return p
}

// Put takes an object back.
func (Quarantine[T]) Put(p *T) { Poison(p) }
