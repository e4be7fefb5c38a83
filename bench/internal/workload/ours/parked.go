// Code generated from ../std by go test ./internal/workload -update; DO NOT EDIT.

package ours

import (
	sync "github.com/hqsync/hqsync/sync2"
	"sync/atomic"

	"github.com/hqsync/hqsync/bench/internal/workload"
)

// room is many mutexes, held by nobody who would unlock them, and those who wait for them.
type room struct {
	mutexes []sync.Mutex
	waiters int
	passed  atomic.Int64
	due     atomic.Int64  // the passed that is told through all
	all     chan struct{} // buffered, so that nobody blocks on it
}

func parked(waiters, mutexes int) workload.Parked {
	r := &room{mutexes: make([]sync.Mutex, mutexes), waiters: waiters, all: make(chan struct{}, 1)}
	for i := range r.mutexes {
		r.mutexes[i].Lock()
	}
	return workload.Parked{Start: r.start, Wake: r.wake, Passed: r.all}
}

func (r *room) start() {
	for i := range r.waiters {
		go r.wait(i % len(r.mutexes))
	}
}

// wait leaves the mutex locked: whoever wakes the next unlocks it.
func (r *room) wait(i int) {
	r.mutexes[i].Lock()
	if r.passed.Add(1) == r.due.Load() {
		r.all <- struct{}{}
	}
}

// wake unlocks the first n of the mutexes.
func (r *room) wake(n int) {
	r.due.Add(int64(n))
	for i := range n {
		r.mutexes[i].Unlock()
	}
}
