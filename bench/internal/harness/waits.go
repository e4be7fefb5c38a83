package harness

import (
	"math"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range and precision of a wait histogram: 1 ns to 100 s, within one per cent. 32 KiB each.
const (
	longestWait = int64(100 * time.Second)
	waitDigits  = 2
)

// Waits records the waits of one goroutine.
//
// It also keeps the goroutine from running on for long. The Go scheduler lets one that never blocks have its P for
// 10 ms; if it is put off between the first clock read and Lock, which is likely once in a sample, it seems to have
// waited for 10 ms of everybody before it in the run queue, whatever the lock does. With turns of some microseconds,
// ended outside the section by [Waits.Turn], a wait is what the lock and its queue make of it.
type Waits struct {
	_       Pad
	hist    *hdrhistogram.Histogram
	longest int64
	turn    int64 // how long the goroutine may run on
	since   int64 // since when it does
	_       Pad
}

// blocked is the length of a wait after which the goroutine must have been off its P, and had a new turn. Spinning in
// Lock is shorter.
const blocked = int64(2 * time.Microsecond)

// Turn returns the time in nanoseconds, after letting others run if the goroutine has had its turn.
func (w *Waits) Turn() int64 {
	now := Now()
	if now-w.since > w.turn {
		runtime.Gosched()
		now = Now()
		w.since = now
	}
	return now
}

// Waited returns the time since start, which Turn returned before Lock.
func (w *Waits) Waited(start int64) int64 {
	now := Now()
	if now-start > blocked {
		w.since = now
	}
	return now - start
}

// Record adds a wait in nanoseconds. One above 100 s counts as 100 s in the percentiles; the maximum is exact.
func (w *Waits) Record(ns int64) {
	w.longest = max(w.longest, ns)
	// The error says that the value is out of range, which clamping excludes.
	_ = w.hist.RecordValue(min(ns, longestWait))
}

var epoch = time.Now()

// Now returns the monotonic time in nanoseconds since the process started.
func Now() int64 { return int64(time.Since(epoch)) }

// A Summary describes the waits of all goroutines of a timed run.
type Summary struct {
	Count               int64
	P50, P99, P999, Max time.Duration
}

// cleanWaits returns n empty recorders, one per goroutine, with that length of a turn; 0: without end.
func (r *Rig) cleanWaits(n int, turn time.Duration) []*Waits {
	if turn == 0 {
		turn = math.MaxInt64
	}
	for len(r.waits) < n {
		r.waits = append(r.waits, &Waits{hist: hdrhistogram.New(1, longestWait, waitDigits)})
	}
	for _, w := range r.waits[:n] {
		w.hist.Reset()
		w.longest, w.turn, w.since = 0, int64(turn), Now()
	}
	return r.waits[:n]
}

func summarize(waits []*Waits) Summary {
	all := hdrhistogram.New(1, longestWait, waitDigits)
	var s Summary
	for _, w := range waits {
		all.Merge(w.hist)
		s.Max = max(s.Max, time.Duration(w.longest))
	}
	s.Count = all.TotalCount()
	s.P50 = time.Duration(all.ValueAtPercentile(50))
	s.P99 = time.Duration(all.ValueAtPercentile(99))
	s.P999 = time.Duration(all.ValueAtPercentile(99.9))
	return s
}
