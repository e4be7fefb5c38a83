package peer

import (
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/workload"
)

// Unlocked has the Do workload without a lock, each goroutine on data of its own: what no lock can exceed.
var Unlocked = workload.Set{
	Do: func(g, in, out int) harness.Job {
		data := make([]struct {
			word uint64
			_    harness.Pad
		}, g)
		loop := func(id int, m *harness.Meter) (t harness.Tally) {
			limit := m.Limit()
			t.Sink = harness.Seed(id)
			own := &data[id].word
			*own = harness.Seed(id)
			f := func() { *own = harness.Steps(*own, in) }
			for p := m.Phase(); p != harness.Stopped && t.Ops < limit; t.Ops += uint64(p & 1) {
				call(f)
				p = m.Phase()
				t.Sink = harness.Steps(t.Sink, out)
			}
			return t
		}
		return harness.Job{Workers: g, Loop: loop}
	},
}

//go:noinline
func call(f func()) { f() }
