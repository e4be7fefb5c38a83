// Package peer has workloads on locks of other people, for the columns beside sync and sync2.
package peer

import (
	"context"
	"sync"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
	"golang.org/x/sync/semaphore"
)

// Channel has the Mutex workloads on a channel of capacity one.
var Channel = mutexSet(1, func() channel { return make(channel, 1) })

// Semaphore has the Mutex workloads on golang.org/x/sync/semaphore with weight one.
var Semaphore = mutexSet(1, func() weighted { return weighted{semaphore.NewWeighted(1)} })

// shards is the number of locks of Sharded.
const shards = 64

// Sharded has the Mutex workloads on many locks of package sync, each with a part of the data: what a program gains
// that does not need one lock at all.
var Sharded = mutexSet(shards, func() *sync.Mutex { return new(sync.Mutex) })

// TAS and Ticket have the Mutex workloads on toys that spin until they have the lock, and let others run now and then.
// The first is unfair, the second strictly in order.
var (
	TAS    = mutexSet(1, func() *tas { return new(tas) })
	Ticket = mutexSet(1, func() *ticket { return new(ticket) })
)

// Thunder, Cascade and HandOff have the Mutex workloads on the simplest locks that park. The first wakes all, the second
// one by one, the third gives the lock to whom it wakes.
var (
	Thunder = mutexSet(1, func() *thunder { return new(thunder) })
	Cascade = mutexSet(1, func() *cascade { return new(cascade) })
	HandOff = mutexSet(1, futex.NewHandOff)
)

// mutexSet has the workloads on n fresh locks.
func mutexSet[L locker](n int, fresh func() L) workload.Set {
	return workload.Set{
		MutexAlone: func() harness.Job { return alone(fresh()) },
		Mutex: func(g, in, out int) harness.Job {
			rooms := make([]room[L], n)
			for i := range rooms {
				rooms[i].mu, rooms[i].data = fresh(), harness.Seed(g+i)
			}
			return shared(rooms, g, in, out)
		},
	}
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

// room is a lock and its data, with nothing else near.
type room[L locker] struct {
	_    harness.Pad
	mu   L
	data uint64
	_    harness.Pad
}

// shared divides the goroutines among the rooms.
func shared[L locker](rooms []room[L], g, in, out int) harness.Job {
	return harness.Job{
		Workers: g,
		Loop: func(id int, m *harness.Meter) (t harness.Tally) {
			r := &rooms[id%len(rooms)]
			limit := m.Limit()
			t.Sink = harness.Seed(id)
			for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
				r.mu.Lock()
				if in > 0 {
					r.data = harness.Steps(r.data, in)
				}
				r.mu.Unlock()
				p = m.Phase()
				t.Sink = harness.Steps(t.Sink, out)
			}
			return t
		},
	}
}
