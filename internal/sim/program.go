//go:build sim

package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Program is what is explored: a few threads of ordinary Go calls on shared words. Every schedule begins with Setup, which
// makes the words anew (the closures share variables with it), and runs the threads to their end.
//
// A program must be deterministic apart from what the engine decides: no real clock, no math/rand, no map order, no state
// that survives from one schedule into the next. The engine notices when a schedule repeated does not repeat.
type Program struct {
	Name    string
	Setup   func()   // makes the shared words; runs outside the schedule: no step, no preemption
	Threads []func() // at least one, at most 32 at a time, with those that Go and timers start
	Names   []string // of the threads, for the trace; T0, T1, ... if shorter

	// Check runs at every scheduling point, after the thread that ran last has come to its next operation. It sees the
	// memory (not the store buffers) and must not write. An error ends the schedule as a failure.
	Check func() error

	// Watch is told of each write of a word when it takes effect, and may object. It is for lists of the transitions that a
	// state word may take: see Transitions.
	Watch func(Write) error
	AskBy bool // Watch asks Write.By, which takes a note of the stack for each buffered store

	// Final runs when all threads have ended, all buffers are empty and no timer is pending.
	Final func() error

	// Outcome describes a final state. The set of outcomes is in the Result; litmus tests are about it.
	Outcome func() string

	// State adds shared state that lives outside of the simulated words (a queue in a slice). Only ByState asks for it.
	State func(*Hash)
}

// Memory says how the words behave.
type Memory uint8

const (
	// SC is sequential consistency: every operation takes effect at once. It is what Go promises for sync/atomic, and what
	// arm64 gives to store-release followed by load-acquire (RCsc).
	SC Memory = iota
	// TSO is x86: StorePlain* and StoreRelease* go through the first-in-first-out store buffer of the thread, which drains
	// entry by entry at moments that the strategy chooses. Loads see the own buffer. Every other write is a locked
	// instruction, which drains the buffer first.
	TSO
	// AcqRel keeps a history per word. A load may return any value that is not older than what the thread is forced to
	// know: by its own accesses, by acquire loads that read release stores, by fences, and for operations of sync/atomic by
	// their total order per word. For acquire, release and atomic operations it is weaker than every machine Go runs on. New
	// values always come last in their word and loads are not delayed, so plain accesses show neither 2+2W nor LB.
	AcqRel
)

func (m Memory) String() string { return [...]string{"SC", "TSO", "AcqRel"}[m] }

// Reduction says when two points of different schedules count as the same, so that one of them need not be continued.
type Reduction uint8

const (
	// ByHistory prunes a schedule that arrives where another one was before: same happens-before graph (each thread has
	// read from the same writes, each word was written in the same order), same thread to continue, no more preemptions
	// left. Sound for programs whose plain memory is free of data races, whatever that memory holds.
	ByHistory Reduction = iota
	// ByState prunes by contents instead: words, buffers, Program.State and, per thread, what it read since its last call
	// of At. Stronger by orders of magnitude, but sound only if nothing else distinguishes two points: for models that
	// keep all state in named words, Program.State and the arguments of At. Not with AcqRel.
	ByState
	// NoReduction runs every schedule.
	NoReduction
)

// ReadyPolicy says when a thread that was unparked may run.
type ReadyPolicy uint8

const (
	AnyP    ReadyPolicy = iota // at once, beside its waker
	RunNext                    // not before its waker blocks, yields or ends: the runnext slot of the waker's P
)

// TimerPolicy says when a timer may fire.
type TimerPolicy uint8

const (
	AnyTime  TimerPolicy = iota // at every scheduling point from its creation on
	LastTime                    // when nothing else can happen
)

// Options say how a program is explored. The zero value explores it exhaustively with at most 2 preemptions under SC.
type Options struct {
	Strategy Strategy // default Exhaustive(2)
	Memory   Memory
	Reduce   Reduction // of Exhaustive
	Ready    ReadyPolicy
	Timers   TimerPolicy

	Budget   int           // schedules at most; 0: 1,000,000
	Time     time.Duration // wall time at most; 0: no limit
	MaxSteps int           // of one schedule; more is reported as a livelock; 0: 20,000
	Spins    int           // futile Pauses in a row of all threads that can run before it is a livelock; 0: 64
	Ticks    int           // times per schedule that the clock moves because a thread spins to a deadline; 0: 2

	Procs   int   // Ps; 0: one per thread of the program
	Migrate bool  // an unpinned thread may find itself on another P when it pins or asks for its CPU: one preemption
	Domains []int // locality domain of each P; short or nil: 0
	Nodes   []int // NUMA node of each P; short or nil: 0

	// ExpectFatal makes Fatal an outcome, named "fatal: " and the message.
	ExpectFatal bool

	Mutant string // name of the fault that sim.Mutant reports as present
	Seed   uint64 // of sim.Rand
}

// Result says what was explored.
type Result struct {
	Program   string
	Strategy  string
	Memory    Memory
	Schedules int   // run, including those that were pruned
	Pruned    int   // cut short by the reduction
	Steps     int64 // in all schedules
	States    int   // distinct points that the reduction remembered
	Longest   int   // steps of the longest schedule
	Exhausted bool  // the whole space within the bound was covered
	Outcomes  map[string]int
	Failure   *Failure // nil: none found
	Took      time.Duration
}

func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s: %d schedules, ", r.Program, r.Strategy, r.Memory, r.Schedules)
	switch {
	case r.Failure != nil:
		fmt.Fprintf(&b, "failed: %s", r.Failure.headline())
	case r.Exhausted:
		b.WriteString("exhausted")
	default:
		b.WriteString("budget spent")
	}
	fmt.Fprintf(&b, " (%d states, longest %d steps, %v)", r.States, r.Longest, r.Took.Round(time.Millisecond))
	return b.String()
}

// OutcomeSet returns the outcomes in order.
func (r Result) OutcomeSet() []string {
	s := make([]string, 0, len(r.Outcomes))
	for o := range r.Outcomes {
		s = append(s, o)
	}
	slices.Sort(s)
	return s
}

// TB is what Run needs of a testing.TB.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Name() string
}

// Run explores p, logs the result and fails the test with a trace when a schedule fails. The environment variable
// HQSYNC_SIM_REPLAY, if set, takes the place of the strategy: it holds the schedule that a failure printed. So that it finds
// its program, a test or subtest should call Run once.
func Run(t TB, p Program, o Options) Result {
	t.Helper()
	if s := replayFromEnv(); s != "" {
		o.Strategy = Replay(s)
	}
	if p.Name == "" {
		p.Name = t.Name()
	}
	r := Explore(p, o)
	if r.Failure != nil {
		t.Fatalf("sim: %s\n%s\nto replay: HQSYNC_SIM_REPLAY='%s' go test -tags sim -run '^%s$'",
			r, r.Failure.Detail(), r.Failure.Schedule, strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^"))
	}
	t.Logf("sim: %s", r)
	return r
}

// CompareReduction fails the test unless the reduction of o, and none, lead to the same: to the same set of outcomes, or to a
// failure of the same kind with as few preemptions. The program needs an Outcome that tells its final states apart.
func CompareReduction(t TB, p Program, o Options) {
	t.Helper()
	if p.Outcome == nil {
		t.Fatalf("program %q has no Outcome", p.Name)
	}
	with := Explore(p, o)
	o.Reduce = NoReduction
	without := Explore(p, o)
	t.Logf("%s; without reduction: %d schedules; %d outcomes", with, without.Schedules, len(without.Outcomes))
	f, g := with.Failure, without.Failure
	switch {
	case f == nil && g == nil && (!with.Exhausted || !without.Exhausted):
		t.Fatalf("not exhausted: %s\n%s", with, without)
	case f == nil && g == nil && slices.Equal(with.OutcomeSet(), without.OutcomeSet()):
	case f != nil && g != nil && f.Kind == g.Kind && f.Preemptions == g.Preemptions:
	default:
		t.Fatalf("with reduction %s, outcomes\n%q\nwithout %s\n%q", with, with.OutcomeSet(), without, without.OutcomeSet())
	}
}
