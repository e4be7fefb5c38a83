// Package peer has workloads on locks of other people, for the columns beside sync and sync2.
package peer

import (
	"context"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
	"golang.org/x/sync/semaphore"
)

// Channel has the Mutex workloads on a channel of capacity one.
var Channel = workload.Set{
	MutexAlone: func() harness.Job { return alone(make(channel, 1)) },
	Mutex:      func(g, in, out int) harness.Job { return shared(make(channel, 1), g, in, out) },
}

// Semaphore has the Mutex workloads on golang.org/x/sync/semaphore with weight one.
var Semaphore = workload.Set{
	MutexAlone: func() harness.Job { return alone(weighted{semaphore.NewWeighted(1)}) },
	Mutex:      func(g, in, out int) harness.Job { return shared(weighted{semaphore.NewWeighted(1)}, g, in, out) },
}

type channel chan struct{}

func (c channel) Lock()   { c <- struct{}{} }
func (c channel) Unlock() { <-c }

type weighted struct{ *semaphore.Weighted }

// Lock cannot fail: the background context never ends.
func (w weighted) Lock()   { _ = w.Acquire(context.Background(), 1) }
func (w weighted) Unlock() { w.Release(1) }

// locker is called through a dictionary here, which costs one or two nanoseconds: little beside these peers.
type locker interface {
	Lock()
	Unlock()
}

func alone[L locker](mu L) harness.Job {
	loop := func(_ int, m *harness.Meter) (t harness.Tally) {
		limit := m.Limit()
		for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
			for range workload.Batch {
				mu.Lock()
				mu.Unlock() //lint:ignore SA2001 an empty section is what is measured
			}
			p = m.Phase()
		}
		return t
	}
	return harness.Job{Workers: 1, Loop: loop}
}

func shared[L locker](mu L, g, in, out int) harness.Job {
	data := &struct {
		_    harness.Pad
		word uint64
		_    harness.Pad
	}{word: harness.Seed(g)}
	section := func() {
		if in > 0 {
			data.word = harness.Steps(data.word, in)
		}
	}
	return harness.Job{
		Workers: g,
		Loop: func(id int, m *harness.Meter) (t harness.Tally) {
			limit := m.Limit()
			t.Sink = harness.Seed(id)
			for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
				mu.Lock()
				section()
				mu.Unlock()
				p = m.Phase()
				t.Sink = harness.Steps(t.Sink, out)
			}
			return t
		},
	}
}
