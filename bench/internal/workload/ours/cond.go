// Code generated from ../std by go test ./internal/workload -update; DO NOT EDIT.

package ours

import (
	sync "github.com/hqsync/hqsync/sync2"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
)

// crowd is many waiters on one condition. Worker 0 broadcasts, the others wait.
type crowd struct {
	mu      sync.Mutex
	cond    sync.Cond
	waiters int
	waiting int    // of the current round
	ran     int    // of the current round
	round   uint64 // waiters wait for it to change
	over    bool
	data    uint64

	// One message per round each, sent by the last waiter to get there; buffered so that it never blocks in the
	// section.
	allWait, allRan chan struct{}
}

func condBroadcast(waiters, in int, held bool) harness.Job {
	c := &crowd{waiters: waiters, data: 1, allWait: make(chan struct{}, 1), allRan: make(chan struct{}, 1)}
	c.cond.L = &c.mu
	return harness.Job{
		Workers:  1 + waiters,
		Counters: 1,
		Loop: func(id int, m *harness.Meter) harness.Tally {
			if id == 0 {
				return c.broadcast(held, m)
			}
			c.wait(in)
			return harness.Tally{}
		},
	}
}

func (c *crowd) wait(in int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over {
		round := c.round
		if c.waiting++; c.waiting == c.waiters {
			c.allWait <- struct{}{}
		}
		for c.round == round {
			c.cond.Wait()
		}
		c.data = harness.Steps(c.data, in)
		if c.ran++; c.ran == c.waiters {
			c.allRan <- struct{}{}
		}
	}
}

// broadcast reads the clock twice per round: the time in which the crowd gathers again is not the subject.
func (c *crowd) broadcast(held bool, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for over := false; !over; {
		<-c.allWait
		p := m.Phase()
		over = p == harness.Stopped || t.Ops >= limit

		c.mu.Lock()
		c.over = over
		c.round++
		c.waiting, c.ran = 0, 0
		start := time.Now()
		if held {
			c.cond.Broadcast()
			c.mu.Unlock()
		} else {
			c.mu.Unlock()
			c.cond.Broadcast()
		}
		<-c.allRan
		if p == harness.Counting && !over {
			t.Busy += time.Since(start)
			t.Ops++
		}
	}
	return t
}

// table is two players who pass a turn to and fro.
type table struct {
	_    harness.Pad
	mu   sync.Mutex
	turn int
	over bool
	cond [2]sync.Cond
	_    harness.Pad
}

func condPingPong() harness.Job {
	s := new(table)
	s.cond[0].L, s.cond[1].L = &s.mu, &s.mu
	return harness.Job{Workers: 2, Counters: 1, Loop: s.play}
}

func (s *table) play(id int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	mine, theirs := &s.cond[id], &s.cond[1-id]
	s.mu.Lock()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		for s.turn != id && !s.over {
			mine.Wait()
		}
		if s.over {
			break
		}
		s.turn = 1 - id
		theirs.Signal()
		p = m.Phase()
	}
	s.over = true
	theirs.Signal()
	s.mu.Unlock()
	return t
}
