package std

//lint:file-ignore SA2001 an empty section is what is measured

import (
	"sync"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// guarded is a lock with the data that it protects beside it, as in most programs, and with nothing else near.
type guarded struct {
	_    harness.Pad
	mu   sync.Mutex
	data uint64
	_    harness.Pad
}

func mutexAlone() harness.Job {
	s := new(guarded)
	return harness.Job{Workers: 1, Loop: s.alone}
}

func (s *guarded) alone(_ int, m *harness.Meter) (t harness.Tally) {
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

func mutexShared(g, in, out int) harness.Job {
	s := &guarded{data: harness.Seed(g)}
	return harness.Job{
		Workers: g,
		Loop:    func(id int, m *harness.Meter) harness.Tally { return s.shared(id, in, out, m) },
		Timed:   func(id int, m *harness.Meter, w *harness.Waits) harness.Tally { return s.timed(id, in, out, m, w) },
	}
}

func (s *guarded) shared(id, in, out int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	t.Sink = harness.Seed(id)
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		s.mu.Lock()
		if in > 0 {
			s.data = harness.Steps(s.data, in)
		}
		s.mu.Unlock()
		p = m.Phase()
		t.Sink = harness.Steps(t.Sink, out)
	}
	return t
}

// timed reads the clock before and after Lock, the second time inside the section: that makes the section longer by
// one clock read, for each implementation alike. A wait that ends after the stop is recorded in full.
func (s *guarded) timed(id, in, out int, m *harness.Meter, w *harness.Waits) (t harness.Tally) {
	t.Sink = harness.Seed(id)
	for p := m.Phase(); p != harness.Stopped; t.Ops += uint64(p & 1) {
		start := w.Turn()
		s.mu.Lock()
		wait := w.Waited(start)
		if in > 0 {
			s.data = harness.Steps(s.data, in)
		}
		s.mu.Unlock()
		p = m.Phase()
		if p != harness.Warming {
			w.Record(wait)
		}
		t.Sink = harness.Steps(t.Sink, out)
	}
	return t
}
