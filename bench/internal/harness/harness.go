// Package harness runs one workload on one implementation for a fixed span and says how much was done.
//
// Workers count in a local variable and hand the count over once, at the end: nothing but the lock under test is
// shared while the clock runs. Throughput workers read no clock; the harness moves a [Meter] through three phases and
// they watch that one read-mostly line. testing.B.RunParallel is not used because its batch size depends on the round
// before and distorts contended results by an order of magnitude.
package harness

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// lineBytes separates what different goroutines write: two 64-byte lines, since adjacent lines are fetched in pairs.
const lineBytes = 128

// Pad fills the space between two variables that must not share a cache line.
type Pad [lineBytes]byte

// The phases of a run. Only operations that end while the phase is Counting count; its value 1 is what a worker adds.
const (
	Warming uint32 = iota
	Counting
	Stopped
)

// unlimited is the operation limit of a run that ends by the clock.
const unlimited = ^uint64(0)

// A Meter tells the workers of one run whether to count and when to stop.
type Meter struct {
	_     Pad
	phase atomic.Uint32
	limit uint64
	_     Pad
}

// Phase returns the phase: an ordinary load on amd64, from a line that is written twice per run.
func (m *Meter) Phase() uint32 { return m.phase.Load() }

// Limit returns the number of operations after which a worker stops even if the phase does not say so.
func (m *Meter) Limit() uint64 { return m.limit }

// A Tally is what one worker did.
type Tally struct {
	// Ops is the number of operations that ended while the phase was Counting.
	Ops uint64
	// Busy is the time that these operations took, for a workload whose operations are apart from one another and
	// long enough to be timed singly (a broadcast to a thousand waiters). Zero: operations fill the whole span.
	Busy time.Duration
	// Sink keeps the result of the simulated work alive.
	Sink uint64
}

// A Job is one workload on one fresh lock. It runs once.
type Job struct {
	// Workers is the number of goroutines, Counters the number of them that count; 0 means all. Those come first.
	Workers, Counters int
	// Warm, if not nil, runs before the workers start.
	Warm func()
	// Loop is worker id's body: it repeats the operation until the phase is Stopped or Limit operations are counted.
	Loop func(id int, m *Meter) Tally
	// Timed is Loop with every acquisition recorded in w. Nil if the job has no such form.
	Timed func(id int, m *Meter, w *Waits) Tally
}

func (j *Job) counters() int {
	if j.Counters > 0 {
		return j.Counters
	}
	return j.Workers
}

// Options say how long a run lasts.
type Options struct {
	Warmup   time.Duration // workers run uncounted for this long
	Duration time.Duration // then counted for this long
	Timed    bool          // run Job.Timed instead of Job.Loop
	Turn     time.Duration // of a timed run: how long a goroutine runs on; see Waits
}

// A Sample is the result of one run.
type Sample struct {
	Ops    uint64
	Busy   time.Duration // the span in which Ops ended, or the sum of the workers' Busy
	Span   time.Duration // the counted span by the wall clock
	CPU    time.Duration // CPU time of the process during Span; 0 where the system does not say
	Counts []uint64      // operations of each counting worker
	Waits  Summary       // of a timed run

	// Values are what a sample that is not a run of a job has measured, by the name of the measure.
	Values map[string]float64
}

// stuckAfter is how long workers may take to finish after the stop before the run is given up. The longest honest
// wait, 1024 goroutines of 20 ms each, stays below it.
const stuckAfter = 30 * time.Second

// A Rig runs jobs one after another and reuses the wait histograms, which are large. Not safe for concurrent use.
type Rig struct{ waits []*Waits }

// slot is where a worker leaves its tally.
type slot struct {
	Tally
	_ Pad
}

// crew is a job whose workers stand at the gate.
type crew struct {
	slots []slot
	gate  chan struct{}
	done  chan struct{}
}

func muster(n int, body func(id int) Tally) *crew {
	c := &crew{slots: make([]slot, n), gate: make(chan struct{}), done: make(chan struct{})}
	var ready, finished sync.WaitGroup
	ready.Add(n)
	finished.Add(n)
	for id := range n {
		go func() {
			defer finished.Done()
			ready.Done()
			<-c.gate
			c.slots[id].Tally = body(id)
		}()
	}
	ready.Wait()
	go func() { finished.Wait(); close(c.done) }()
	return c
}

// Run runs the job once. It returns the context's error if ctx ends first, and an error that names the numbers if
// workers do not come back after the stop, which means that the lock lost a wake-up: they are left where they are.
//
// The garbage collector runs before and not during the span, unless the process reaches its memory limit.
func (r *Rig) Run(ctx context.Context, job Job, o Options) (Sample, error) {
	if o.Timed && job.Timed == nil {
		return Sample{}, fmt.Errorf("bench: this workload has no timed form")
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if job.Warm != nil {
		job.Warm()
	}
	m := &Meter{limit: unlimited}
	body := func(id int) Tally { return job.Loop(id, m) }
	if o.Timed {
		waits := r.cleanWaits(job.Workers, o.Turn)
		body = func(id int) Tally { return job.Timed(id, m, waits[id]) }
	}
	c := muster(job.Workers, body)
	close(c.gate)
	err := sleep(ctx, o.Warmup)

	s := Sample{}
	cpu := CPUTime()
	m.phase.Store(Counting)
	start := time.Now()
	if err == nil {
		err = sleep(ctx, o.Duration)
	}
	m.phase.Store(Stopped)
	s.Span = time.Since(start)
	s.CPU = CPUTime() - cpu

	if e := c.wait(stuckAfter); e != nil {
		return Sample{}, e
	}
	if err != nil {
		return Sample{}, err
	}
	for _, t := range c.slots[:job.counters()] {
		s.Counts = append(s.Counts, t.Ops)
		s.Ops += t.Ops
		s.Busy += t.Busy
	}
	if s.Busy == 0 {
		s.Busy = s.Span
	}
	if o.Timed {
		s.Waits = summarize(r.waits[:job.Workers])
	}
	return s, nil
}

// RunN makes the job's counting workers do n operations between them, rounded up to the same number each, and
// returns their tallies' sum. It is for testing.B, which wants a count in and takes the time itself; begin is called
// when all workers stand ready.
func RunN(job Job, n uint64, begin func()) (Tally, error) {
	if job.Warm != nil {
		job.Warm()
	}
	each := (n + uint64(job.counters()) - 1) / uint64(job.counters())
	m := &Meter{limit: each}
	m.phase.Store(Counting)
	c := muster(job.Workers, func(id int) Tally { return job.Loop(id, m) })
	begin()
	close(c.gate)
	if err := c.wait(10 * time.Minute); err != nil {
		return Tally{}, err
	}
	var sum Tally
	for _, t := range c.slots {
		sum.Ops += t.Ops
		sum.Busy += t.Busy
		sum.Sink += t.Sink
	}
	return sum, nil
}

func (c *crew) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("bench: some of %d workers still waited %v after the stop: a wake-up was lost", len(c.slots), d)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
