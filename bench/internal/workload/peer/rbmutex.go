package peer

import (
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
	"github.com/puzpuzpuz/xsync/v4"
)

// RBMutex has the reader workloads on xsync.RBMutex, the reader-biased lock that Go programs use today. The loops are
// those of package std; only the token that its RLock returns keeps it from sharing their text.
var RBMutex = workload.Set{
	RWMutexReadAlone: func(int) harness.Job { return harness.Job{Workers: 1, Loop: newBiased().read} },
	RWMutexRead:      func(g int) harness.Job { return harness.Job{Workers: g, Loop: newBiased().read} },
	RWMutexMix: func(g, nth, in int) harness.Job {
		s := newBiased()
		s.data = harness.Seed(g)
		return harness.Job{
			Workers: g,
			Loop:    func(id int, m *harness.Meter) harness.Tally { return s.mix(id, id*nth/g, nth, in, m) },
		}
	},
}

type biased struct {
	_    harness.Pad
	mu   *xsync.RBMutex
	data uint64
	_    harness.Pad
}

func newBiased() *biased { return &biased{mu: xsync.NewRBMutex()} }

func (s *biased) read(_ int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
		for range workload.Batch {
			token := s.mu.RLock()
			s.mu.RUnlock(token)
		}
		p = m.Phase()
	}
	return t
}

func (s *biased) mix(id, round, nth, in int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	t.Sink = harness.Seed(id)
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		if round++; round >= nth {
			round = 0
			s.mu.Lock()
			s.data = harness.Steps(s.data, in)
			s.mu.Unlock()
		} else {
			token := s.mu.RLock()
			if in > 0 {
				t.Sink = harness.Steps(t.Sink^s.data|1, in)
			}
			s.mu.RUnlock(token)
		}
		p = m.Phase()
	}
	return t
}
