//go:build sim

package sim

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
)

// Event is one line of a trace.
type Event struct {
	Thread string
	Op     string
	Word   string // empty: none
	Old    string
	New    string // empty: nothing was written
	Note   string
	At     string // file:line in the code under test
}

// note appends an operation of t to the trace.
func (e *engine) note(t *thread, w *word, old, now value, text string) {
	if !e.tracing {
		return
	}
	ev := Event{Thread: t.name, Op: t.op.String(), Note: text, At: caller()}
	if w != nil {
		e.describe(&ev, w, old, now)
		if ev.New == "" && t.op.writes() && text != failed {
			ev.New = ev.Old
		}
	}
	e.events = append(e.events, ev)
}

// failed marks a compare-and-swap, or another attempt, that wrote nothing.
const failed = "failed"

func (op opcode) writes() bool {
	switch op {
	case opStore, opSwap, opCAS, opAdd, opAnd, opOr, opStorePlain, opStoreRelease:
		return true
	}
	return false
}

func (e *engine) noteDrain(t *thread, w *word, old, now value) {
	ev := Event{Thread: t.name, Op: opDrain.String()}
	e.describe(&ev, w, old, now)
	e.events = append(e.events, ev)
}

func (e *engine) noteText(t *thread, text string) {
	e.events = append(e.events, Event{Thread: t.name, Note: text})
}

func (e *engine) describe(ev *Event, w *word, old, now value) {
	n := e.naming(w.at)
	ev.Word, ev.Old = e.nameWord(w), e.format(n, old)
	if old != now {
		ev.New = e.format(n, now)
	}
}

// caller returns the place in the code under test that called into the engine.
func caller() string {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		base := filepath.Base(f.File)
		inEngine := strings.Contains(f.Function, "internal/sim.") && !strings.HasSuffix(base, "_test.go")
		if !inEngine && base != "seam_sim.go" {
			return fmt.Sprintf("%s:%d", base, f.Line)
		}
		if !more {
			return ""
		}
	}
}

func writeTrace(w io.Writer, events []Event) {
	rows := make([][5]string, len(events))
	var wide [5]int
	for i, ev := range events {
		change := ev.Old
		if ev.New != "" {
			change += " -> " + ev.New
		}
		rows[i] = [5]string{ev.Thread, ev.Op, ev.Word, change, ev.Note}
		for c, s := range rows[i] {
			wide[c] = max(wide[c], len(s))
		}
	}
	for i, r := range rows {
		fmt.Fprintf(w, "%4d ", i+1)
		for c, s := range r {
			fmt.Fprintf(w, " %-*s", wide[c], s)
		}
		fmt.Fprintf(w, "  %s\n", events[i].At)
	}
}
