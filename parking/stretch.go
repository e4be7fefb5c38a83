package parking

// A stretch measures for how long a resizer keeps its P pinned. It is guarded by
// Table.resizing.
type stretch struct {
	last, sum, longest int64 // monotonic ns
}

// Time between two looks at the clock that is longer than this is left out: the
// thread was off its CPU, which a shared machine does to anybody.
const offCPU = 50_000

//go:norace
func (s *stretch) begin() { s.last, s.sum = nanotime(), 0 }

// tick is called with the number of queues moved so far.
//
//go:norace
func (s *stretch) tick(n int) {
	if n%8 == 7 {
		s.look()
	}
}

//go:norace
func (s *stretch) end() {
	s.look()
	s.longest = max(s.longest, s.sum)
}

//go:norace
func (s *stretch) look() {
	t := nanotime()
	if gap := t - s.last; gap <= offCPU {
		s.sum += gap
	}
	s.last = t
}
