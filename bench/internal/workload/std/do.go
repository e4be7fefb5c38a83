package std

import (
	"sync"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// served is data that functions work on under a lock. How a function is called under it is in call.go, the one file in
// which this package and package ours differ: package sync has no Do.
type served struct {
	_    harness.Pad
	mu   sync.Mutex
	data uint64
	_    harness.Pad
}

func doAlone() harness.Job {
	s := new(served)
	return harness.Job{Workers: 1, Loop: s.alone}
}

func (s *served) alone(_ int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	f := func() { s.data++ }
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
		for range workload.Batch {
			s.call(f)
		}
		p = m.Phase()
	}
	return t
}

func doShared(g, in, out int) harness.Job {
	s := &served{data: harness.Seed(g)}
	return harness.Job{Workers: g, Loop: func(id int, m *harness.Meter) harness.Tally { return s.shared(id, in, out, m) }}
}

func (s *served) shared(id, in, out int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	t.Sink = harness.Seed(id)
	f := func() { s.data = harness.Steps(s.data, in) }
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		s.call(f)
		p = m.Phase()
		t.Sink = harness.Steps(t.Sink, out)
	}
	return t
}
