//go:build sim

package sim

import (
	"context"
	"runtime/pprof"
	"sync/atomic"
	"unsafe"
)

// goroutineLabels returns the profiler labels of the calling goroutine. A goroutine has no name in Go, but it has this
// pointer, and reading it costs a nanosecond. Only its identity is used, never what it points to. The runtime keeps the
// symbol linkable and its signature fixed (go.dev/issue/67401).
//
//go:linkname goroutineLabels runtime/pprof.runtime_getProfLabel
func goroutineLabels() unsafe.Pointer

// maxEngines is how many explorations may be under way in one process at a time; others wait. Each needs a CPU to be of use.
const maxEngines = 4

var (
	slots   = make(chan struct{}, maxEngines)  // one message per engine
	active  atomic.Int32                       // engines in the table below: 0 sends every caller to the real thing at once
	engines [maxEngines]atomic.Pointer[engine] // an engine's label is written before the engine is published here
)

// current returns the simulated thread that the calling goroutine carries, nil for every other goroutine and for the
// parts of a program that run outside the schedule (Setup, Check, Final).
func current() *thread {
	if active.Load() == 0 {
		return nil
	}
	if e := engineHere(); e != nil {
		return e.cur
	}
	return nil
}

// engineHere returns the engine that the calling goroutine works for, nil if none. The coroutines of an engine and the
// goroutine that drives them carry the engine's label and nobody else does, so that the field cur, which is not atomic,
// is read by them alone, one at a time.
func engineHere() *engine {
	if active.Load() == 0 {
		return nil
	}
	l := goroutineLabels()
	for i := range engines {
		if e := engines[i].Load(); e != nil && e.label == l {
			return e
		}
	}
	return nil
}

// mark gives the calling goroutine the engine's label; goroutines and coroutines that it starts inherit it.
func (e *engine) mark() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("sim", e.prog.Name)))
	e.label = goroutineLabels()
}

// publish enters the engine into the table of engines, once there is room.
func (e *engine) publish() {
	slots <- struct{}{}
	for i := range engines {
		if engines[i].CompareAndSwap(nil, e) {
			active.Add(1)
			return
		}
	}
}

// withdraw undoes publish.
func (e *engine) withdraw() {
	for i := range engines {
		if engines[i].CompareAndSwap(e, nil) {
			active.Add(-1)
			<-slots
		}
	}
}
