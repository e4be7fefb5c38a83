package std

//lint:file-ignore SA2001 an empty section is what is measured

import (
	"sync"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// shelf is an RWMutex with the data that it protects beside it.
type shelf struct {
	_    harness.Pad
	mu   sync.RWMutex
	data uint64
	_    harness.Pad
}

// warmReads is the number of reads of each goroutine by which an implementation may notice that readers are on several Ps: a few
// milliseconds, long enough for the Ps to run at the same time.
const warmReads = 1 << 18

func (s *shelf) readTogether(g int) {
	var all sync.WaitGroup
	for range g {
		all.Go(func() {
			for range warmReads {
				s.mu.RLock()
				s.mu.RUnlock()
			}
		})
	}
	all.Wait()
}

func rwReadAlone(warm int) harness.Job {
	s := new(shelf)
	return harness.Job{Workers: 1, Warm: func() { s.readTogether(warm) }, Loop: s.read}
}

func rwRead(g int) harness.Job {
	s := new(shelf)
	return harness.Job{Workers: g, Loop: s.read}
}

func (s *shelf) read(_ int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
		for range workload.Batch {
			s.mu.RLock()
			s.mu.RUnlock()
		}
		p = m.Phase()
	}
	return t
}

func rwWriteAlone() harness.Job {
	s := new(shelf)
	return harness.Job{Workers: 1, Loop: s.write}
}

func (s *shelf) write(_ int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
		for range workload.Batch {
			s.mu.Lock()
			s.mu.Unlock()
		}
		p = m.Phase()
	}
	return t
}

func rwMix(g, nth, in int) harness.Job {
	s := &shelf{data: harness.Seed(g)}
	return harness.Job{
		Workers: g,
		Loop:    func(id int, m *harness.Meter) harness.Tally { return s.mix(id, id*nth/g, nth, in, m) },
		Timed: func(id int, m *harness.Meter, w *harness.Waits) harness.Tally {
			return s.mixTimed(id, id*nth/g, nth, in, m, w)
		},
	}
}

// mix starts each goroutine at another round of its cycle, so that the writers do not come together.
func (s *shelf) mix(id, round, nth, in int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	t.Sink = harness.Seed(id)
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		if round++; round >= nth {
			round = 0
			s.mu.Lock()
			s.data = harness.Steps(s.data, in)
			s.mu.Unlock()
		} else {
			s.mu.RLock()
			if in > 0 {
				t.Sink = harness.Steps(t.Sink^s.data|1, in)
			}
			s.mu.RUnlock()
		}
		p = m.Phase()
	}
	return t
}

func (s *shelf) mixTimed(id, round, nth, in int, m *harness.Meter, w *harness.Waits) (t harness.Tally) {
	t.Sink = harness.Seed(id)
	for p := m.Phase(); p != harness.Stopped; t.Ops += uint64(p & 1) {
		wait := int64(-1)
		if round++; round >= nth {
			round = 0
			start := w.Turn()
			s.mu.Lock()
			wait = w.Waited(start)
			s.data = harness.Steps(s.data, in)
			s.mu.Unlock()
		} else {
			s.mu.RLock()
			if in > 0 {
				t.Sink = harness.Steps(t.Sink^s.data|1, in)
			}
			s.mu.RUnlock()
		}
		p = m.Phase()
		if wait >= 0 && p != harness.Warming {
			w.Record(wait)
		}
	}
	return t
}
