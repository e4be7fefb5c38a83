//go:build sim

package sim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	maxThreads = 32

	defaultBudget   = 1_000_000
	defaultMaxSteps = 20_000
	defaultSpins    = 64
	defaultTicks    = 2
)

// engine runs the schedules of one program. Exactly one of its coroutines, or the goroutine that drives them, runs at any
// moment; whoever runs owns every field. A thread that comes to an operation decides itself who runs next (schedule) and
// goes on without a switch if that is itself, which is the common case.
type engine struct {
	label addr // of the goroutines that belong to this engine; see current
	cur   *thread
	prog  Program
	opt   Options
	strat chooser

	threads []*thread // slots, reused by later schedules; threads[:n] live in this one
	n       int
	next    *thread // who is to be resumed; set by the thread that gives way
	last    *thread // who executed the last step
	over    bool    // the schedule is finished: threads that are resumed unwind
	pruned  bool
	tracing bool
	fail    *Failure

	steps   int
	used    int // preemptions so far
	bound   int // preemptions at most; < 0: no limit
	opts    []option
	rec     []token // what was chosen, run-length encoded
	yielded int     // threads whose yielded flag is set
	pinned  int     // threads that are pinned
	live    int     // threads that have not ended
	futile  int     // resumptions in a row of threads that spin in vain
	ticks   int
	procs   []*thread // who was on each P last

	memory
	clock
	stillness
	names     []naming
	ids       map[uintptr]uint64
	poisoned  []span
	events    []Event
	functions map[uintptr][]string // that return addresses are in
	consulted bool                 // the program asked for the mutant
	fatal     string               // how the schedule ended, if Options.ExpectFatal
	one       [maxThreads]int      // scratch
	name      [maxThreads]string   // of the program's threads
}

func replayFromEnv() string { return os.Getenv("HQSYNC_SIM_REPLAY") }

// Explore runs schedules of p until the strategy is done, the budget is spent or a schedule fails. A failing schedule is
// shrunk and replayed with a trace.
func Explore(p Program, o Options) Result {
	if len(p.Threads) == 0 || len(p.Threads) > maxThreads {
		panic(fmt.Sprintf("sim: program %q has %d threads, allowed are 1 to %d", p.Name, len(p.Threads), maxThreads))
	}
	if o.Reduce == ByState && o.Memory == AcqRel {
		panic("sim: reduction ByState does not go with memory AcqRel: which values may still be read is no content")
	}
	if current() != nil {
		panic("sim: Explore called by a simulated thread")
	}
	o.fill(p)
	var (
		r    Result
		died any
		done = make(chan bool)
	)
	go func() {
		ok := false
		defer func() {
			if v := recover(); v != nil {
				died = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
			done <- ok
		}()
		r = newEngine(p, o).explore()
		ok = true
	}()
	switch ok := <-done; {
	case died != nil:
		panic(died)
	case !ok: // Setup, Check or Final called t.FailNow
		runtime.Goexit()
	}
	return r
}

func (o *Options) fill(p Program) {
	if o.Strategy == nil {
		o.Strategy = Exhaustive(2)
	}
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&o.Budget, defaultBudget)
	set(&o.MaxSteps, defaultMaxSteps)
	set(&o.Spins, defaultSpins)
	set(&o.Ticks, defaultTicks)
	set(&o.Procs, len(p.Threads))
}

func newEngine(p Program, o Options) *engine {
	e := &engine{prog: p, opt: o, procs: make([]*thread, o.Procs), ids: map[uintptr]uint64{}}
	for i := range p.Threads {
		e.name[i] = fmt.Sprintf("T%d", i)
		if i < len(p.Names) {
			e.name[i] = p.Names[i]
		}
	}
	e.memory.init(o.Memory, o.Reduce)
	return e
}

// explore is the life of an engine, on a goroutine of its own.
func (e *engine) explore() Result {
	e.mark()
	e.publish()
	defer e.withdraw()
	defer e.dismiss()

	start := time.Now()
	r := Result{Program: e.prog.Name, Strategy: e.opt.Strategy.String(), Memory: e.opt.Memory, Outcomes: map[string]int{}}
	search := e.opt.Strategy.begin(e)
	for r.Schedules < e.opt.Budget && (e.opt.Time == 0 || r.Schedules%64 != 0 || time.Since(start) < e.opt.Time) {
		if !search.another() {
			r.Exhausted = search.complete()
			break
		}
		e.strat = search
		e.runSchedule()
		r.Schedules++
		r.Steps += int64(e.steps)
		r.Longest = max(r.Longest, e.steps)
		if e.pruned {
			r.Pruned++
			continue
		}
		if e.fail != nil {
			r.Failure = e.explain(e.fail, search.seed())
			break
		}
		switch {
		case e.fatal != "":
			r.Outcomes["fatal: "+e.fatal]++
		case e.prog.Outcome != nil:
			r.Outcomes[e.prog.Outcome()]++
		}
	}
	if e.opt.Mutant != "" && !e.consulted && r.Failure == nil && (r.Exhausted || r.Schedules >= 1000) {
		panic(fmt.Sprintf("sim: program %q never asked for mutant %q", e.prog.Name, e.opt.Mutant))
	}
	r.States = search.states()
	r.Took = time.Since(start)
	return r
}

// runSchedule runs one schedule from Setup to Final.
func (e *engine) runSchedule() {
	e.reset()
	if e.prog.Setup != nil {
		e.prog.Setup()
	}
	e.named = len(e.names)
	for i, f := range e.prog.Threads {
		e.spawn(e.name[i], f, uint64(i))
	}
	e.next = e.schedule()
	for e.next != nil {
		t := e.next
		e.next = nil
		e.cur = t
		t.resume()
		e.cur = nil
	}
	e.over = true
	for _, t := range e.threads[:e.n] {
		t.unwind()
	}
	if e.fail == nil && !e.pruned && e.fatal == "" && e.prog.Final != nil {
		if err := e.prog.Final(); err != nil {
			e.failWith(KindFinal, err.Error())
		}
	}
}

func (e *engine) reset() {
	e.n, e.next, e.last, e.cur = 0, nil, nil, nil
	e.over, e.pruned, e.fail, e.fatal = false, false, nil, ""
	e.steps, e.used, e.yielded, e.pinned, e.live, e.futile, e.ticks = 0, 0, 0, 0, 0, 0, 0
	e.rec = e.rec[:0]
	clear(e.procs)
	e.names, e.named = e.names[:0], 0
	clear(e.fresh)
	e.fresh = e.fresh[:0]
	clear(e.ids)
	e.poisoned = e.poisoned[:0]
	e.events = e.events[:0]
	e.memory.reset()
	e.clock.reset()
}

// dismiss ends the coroutines.
func (e *engine) dismiss() {
	e.over = true
	for _, t := range e.threads {
		t.dismiss()
	}
}
