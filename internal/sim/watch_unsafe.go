//go:build sim

package sim

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// A Write is the change of one word.
type Write struct {
	Object   string // name of the object that the word is in: that of Name in Setup, or the type that a Quarantine is for; empty: neither
	Offset   uintptr
	At       unsafe.Pointer // address of the word
	Old, New uint64         // a pointer is its address

	e  *engine
	by []uintptr // where a write that comes out of a store buffer was made; nil: whoever reports it makes it
}

// By returns the functions that wrote, innermost first, by the names that runtime.Frame has for them, without those of this
// package. It may be called by the Watch of a Program that has AskBy.
func (w Write) By() (functions []string) {
	pcs := w.by
	if pcs == nil {
		pcs = callers()
	}
	for _, pc := range pcs {
		for _, name := range w.e.functionsAt(pc) {
			switch {
			case name == ownPackage+"(*engine).watch": // what came before is Program.Watch
				functions = functions[:0]
			case !strings.HasPrefix(name, ownPackage):
				functions = append(functions, name)
			}
		}
	}
	return functions
}

// callers returns where the caller was called from.
func callers() []uintptr {
	pcs := make([]uintptr, 40)
	return pcs[:runtime.Callers(2, pcs)]
}

const ownPackage = "github.com/hqsync/hqsync/internal/sim."

// functionsAt returns the functions that a return address is in: several, if they are inlined.
func (e *engine) functionsAt(pc uintptr) []string {
	if names, ok := e.functions[pc]; ok {
		return names
	}
	var names []string
	for frames, more := runtime.CallersFrames([]uintptr{pc}), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		names = append(names, f.Function)
	}
	if e.functions == nil {
		e.functions = map[uintptr][]string{}
	}
	e.functions[pc] = names
	return names
}

// number is a value as Write has it.
func (v value) number() uint64 {
	if v.p != nil {
		return uint64(uintptr(v.p))
	}
	return v.n
}

// watch shows a write that is about to take effect to Program.Watch.
func (e *engine) watch(w *word, v value, by []uintptr) {
	if w.width == object {
		return
	}
	ev := Write{Offset: w.kind.offset, At: w.at, Old: w.peek().number(), New: v.number(), e: e, by: by}
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
