//go:build sim

package sim

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// A Write is the change of one word.
type Write struct {
	Object   string // name of the object that the word is in: that of Name in Setup, or the type that a Quarantine is for; empty: neither
	Offset   uintptr
	At       unsafe.Pointer // address of the word
	Old, New uint64
}

// watch shows a write that is about to take effect to Program.Watch.
func (e *engine) watch(w *word, v value) {
	if w.width == object {
		return
	}
	ev := Write{Offset: w.kind.offset, At: w.at, Old: w.peek().n, New: v.n}
	switch k := w.kind; {
	case k.typ != nil:
		ev.Object = k.typ.Name()
	case k.name != 0:
		ev.Object = e.names[k.name-1].name
	}
	if err := e.prog.Watch(ev); err != nil {
		e.failWith(KindCheck, err.Error())
	}
}

// Transitions is the list of transitions in the header of the file that owns a state word, and how often schedules took
// each. A test runs its programs with a Watch that calls Took, and ends with Untaken.
type Transitions struct {
	names []string
	count map[string]int
}

// NewTransitions returns a list of transitions.
func NewTransitions(names ...string) *Transitions {
	return &Transitions{names, map[string]int{}}
}

// Took counts one; a name that is not in the list is an error.
func (t *Transitions) Took(name string) error {
	if !slices.Contains(t.names, name) {
		return fmt.Errorf("transition %q is not in the list", name)
	}
	t.count[name]++
	return nil
}

// Untaken returns those that no schedule took.
func (t *Transitions) Untaken() (names []string) {
	for _, n := range t.names {
		if t.count[n] == 0 {
			names = append(names, n)
		}
	}
	return names
}

// String lists all with their counts.
func (t *Transitions) String() string {
	parts := make([]string, len(t.names))
	for i, n := range t.names {
		parts[i] = fmt.Sprintf("%s %d", n, t.count[n])
	}
	return strings.Join(parts, ", ")
}
