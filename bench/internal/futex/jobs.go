package futex

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
)

// Batch is the number of refused waits between two looks at the meter.
const Batch = 64

// Hash is perf bench futex hash: each of g goroutines has words of its own, and waits on one after the other for a
// value that it does not have. So an operation is a look-up, a lock, a comparison and an unlock.
func Hash(f Futex, g, words int) harness.Job {
	return harness.Job{
		Workers: g,
		Loop: func(_ int, m *harness.Meter) (t harness.Tally) {
			own := make([]uint32, words)
			limit, next := m.Limit(), 0
			for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += Batch * uint64(p&1) {
				if err := f.Refuse(own[next : next+Batch]); err != nil {
					panic(err)
				}
				next = (next + Batch) % len(own)
				p = m.Phase()
			}
			return t
		},
	}
}

// A crowd waits on a word, again and again, until the last round. Its word never changes: every wait that ends has
// been ended by one wake-up.
type crowd struct {
	f       Futex
	waiters int
	word    uint32
	_       harness.Pad
	other   uint32 // requeue's second word
	_       harness.Pad
	arrived atomic.Int64
	over    atomic.Bool
}

func (c *crowd) wait() (t harness.Tally) {
	for !c.over.Load() {
		c.arrived.Add(1)
		for !c.f.Wait(&c.word, 0) {
		}
	}
	return t
}

// settling is how long after the last goroutine has set out for the word all are taken to sleep there. Who does not is
// woken as soon as he does.
const settling = 300 * time.Microsecond

// gathered returns when all wait for the round, from 1.
func (c *crowd) gathered(round int64) {
	for c.arrived.Load() < round*int64(c.waiters) {
		time.Sleep(20 * time.Microsecond)
	}
	time.Sleep(settling)
}

// release wakes n from the word and returns when it has.
func (c *crowd) release(word *uint32, n, perCall int) {
	for woken := 0; woken < n; {
		k := c.f.Wake(word, min(perCall, n-woken))
		if woken += k; k == 0 {
			runtime.Gosched()
		}
	}
}

// rounds runs round again and again, and after the last lets the crowd go.
func (c *crowd) rounds(m *harness.Meter, round func() (ops uint64, took time.Duration)) (t harness.Tally) {
	n := int64(1)
	for c.gathered(n); m.Phase() != harness.Stopped && t.Ops < m.Limit(); c.gathered(n) {
		counts := m.Phase() == harness.Counting
		ops, took := round()
		if counts {
			t.Ops += ops
			t.Busy += took
		}
		n++
	}
	c.over.Store(true)
	c.release(&c.word, c.waiters, c.waiters)
	return t
}

// Wake is perf bench futex wake: one goroutine wakes a crowd, so many per call. An operation is one that it wakes.
func Wake(f Futex, waiters, perCall int) harness.Job {
	c := &crowd{f: f, waiters: waiters}
	return c.job(1, func(_ int, m *harness.Meter) harness.Tally {
		return c.rounds(m, func() (uint64, time.Duration) {
			start := time.Now()
			c.release(&c.word, waiters, perCall)
			return uint64(waiters), time.Since(start)
		})
	})
}

// job has the wakers first, then the crowd.
func (c *crowd) job(wakers int, loop func(id int, m *harness.Meter) harness.Tally) harness.Job {
	return harness.Job{
		Workers: wakers + c.waiters, Counters: wakers,
		Loop: func(id int, m *harness.Meter) harness.Tally {
			if id < wakers {
				return loop(id, m)
			}
			return c.wait()
		},
	}
}

// WakeParallel is perf bench futex wake-parallel: several goroutines at the same time wake their part of a crowd, each
// in one call. An operation is one such call.
func WakeParallel(f Futex, waiters, wakers int) harness.Job {
	c := &crowd{f: f, waiters: waiters}
	each := waiters / wakers
	var start, done atomic.Int64 // rounds that have begun; calls that have returned
	var woken atomic.Int64
	call := func() time.Duration {
		begin := time.Now()
		n := c.f.Wake(&c.word, each)
		took := time.Since(begin)
		woken.Add(int64(n))
		done.Add(1)
		return took
	}
	leader := func(m *harness.Meter) harness.Tally {
		t := c.rounds(m, func() (uint64, time.Duration) {
			woken.Store(0)
			done.Store(0)
			start.Add(1)
			took := call()
			for done.Load() < int64(wakers) {
				runtime.Gosched()
			}
			c.release(&c.word, waiters-int(woken.Load()), waiters) // who was late
			return 1, took
		})
		start.Store(-1)
		return t
	}
	return c.job(wakers, func(id int, m *harness.Meter) (t harness.Tally) {
		if id == 0 {
			return leader(m)
		}
		for seen := int64(0); ; {
			switch now := start.Load(); {
			case now < 0:
				return t
			case now == seen:
				runtime.Gosched()
			default:
				seen = now
				counts := m.Phase() == harness.Counting
				if took := call(); counts {
					t.Ops++
					t.Busy += took
				}
			}
		}
	})
}

// Requeue is perf bench futex requeue: one goroutine moves a crowd to another word without waking anybody, so many per
// call. An operation is one that it moves. Waking them again is not timed.
func Requeue(f Futex, waiters, perCall int) harness.Job {
	c := &crowd{f: f, waiters: waiters}
	return c.job(1, func(_ int, m *harness.Meter) harness.Tally {
		return c.rounds(m, func() (uint64, time.Duration) {
			start := time.Now()
			for moved := 0; moved < waiters; {
				n := c.f.Requeue(&c.word, &c.other, min(perCall, waiters-moved))
				if moved += n; n == 0 {
					runtime.Gosched()
				}
			}
			took := time.Since(start)
			c.release(&c.other, waiters, waiters)
			return uint64(waiters), took
		})
	})
}
