package std

import (
	"sync"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

type group struct {
	_  harness.Pad
	wg sync.WaitGroup
	_  harness.Pad
}

func waitGroupForkJoin(n int) harness.Job {
	s := new(group)
	return harness.Job{Workers: 1, Loop: func(_ int, m *harness.Meter) harness.Tally { return s.forkJoin(n, m) }}
}

func (s *group) forkJoin(n int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
		s.wg.Add(n)
		for range n {
			go s.wg.Done()
		}
		s.wg.Wait()
		p = m.Phase()
	}
	return t
}

func waitGroupAddDone(g int) harness.Job {
	s := new(group)
	return harness.Job{Workers: g, Loop: s.addDone}
}

func (s *group) addDone(_ int, m *harness.Meter) (t harness.Tally) {
	limit := m.Limit()
	for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += workload.Batch * uint64(p&1) {
		for range workload.Batch {
			s.wg.Add(1)
			s.wg.Done()
		}
		p = m.Phase()
	}
	return t
}
