//go:build sim

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind classifies failures.
type Kind string

const (
	KindDeadlock Kind = "deadlock" // nobody can run and somebody has not ended: a lost wake-up, as a rule
	KindLivelock Kind = "livelock" // too many steps, or everybody spins
	KindCheck    Kind = "check"    // Program.Check
	KindFinal    Kind = "final"    // Program.Final
	KindAssert   Kind = "assertion"
	KindMisuse   Kind = "misuse" // of park, pin, mutex or the engine
	KindPoison   Kind = "poison" // memory used after Poison
	KindPanic    Kind = "panic"
	KindFatal    Kind = "fatal"
	KindUnstable Kind = "not deterministic"
)

// Failure is a schedule that went wrong.
type Failure struct {
	Kind        Kind
	Message     string
	Schedule    string // shrunk; for Replay
	Seed        uint64 // of the strategy, for the schedule before it was shrunk; 0: none
	Steps       int
	Preemptions int
	FoundSteps  int // before it was shrunk
	Trace       []Event
	Reproduced  bool // the replay failed in the same way
}

func (f *Failure) Error() string { return f.headline() }

func (f *Failure) headline() string {
	line, _, _ := strings.Cut(f.Message, "\n")
	return fmt.Sprintf("%s: %s (%d steps, %d preemptions)", f.Kind, line, f.Steps, f.Preemptions)
}

// same reports whether two failures are of one sort: figures in their messages do not count.
func (f *Failure) same(g *Failure) bool {
	if g == nil || f.Kind != g.Kind {
		return false
	}
	switch f.Kind {
	case KindDeadlock, KindLivelock, KindPanic, KindPoison: // what these say depends on where everybody stands
		return true
	}
	return withoutDigits(f.Message) == withoutDigits(g.Message)
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// Detail returns the trace and how to see it again.
func (f *Failure) Detail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.Kind, f.Message)
	writeTrace(&b, f.Trace)
	if f.Seed != 0 {
		fmt.Fprintf(&b, "seed %d, ", f.Seed)
	}
	fmt.Fprintf(&b, "%d steps (%d before shrinking), %d preemptions\n", f.Steps, f.FoundSteps, f.Preemptions)
	if !f.Reproduced {
		b.WriteString("the replay did not fail in the same way: the program depends on something the engine does not own\n")
	}
	fmt.Fprintf(&b, "schedule: %s", f.Schedule)
	return b.String()
}

// failWith records a failure, the first of its schedule, and ends the schedule.
func (e *engine) failWith(k Kind, msg string) {
	if e.fail == nil {
		e.fail = &Failure{Kind: k, Message: msg}
	}
	e.over = true
}

// explain turns a failure just found into its report: it shrinks the schedule and replays it with a trace.
func (e *engine) explain(f *Failure, seed uint64) *Failure {
	f.Seed, f.FoundSteps = seed, e.steps
	tree, minimal := e.strat.(*treeSearch)
	minimal = minimal && tree.bound >= 0
	best := e.shrink(f, e.outcome())
	if !minimal && best.preemptions > 0 {
		if a, ok := e.search(f, best.preemptions-1); ok {
			best = e.shrink(f, a)
		}
	}
	e.tracing = true
	e.follow(best.script)
	e.tracing = false
	f.Reproduced = f.same(e.fail)
	if f.Reproduced {
		f.Message = e.fail.Message
	}
	f.Schedule, f.Trace = spell(best.script), slices.Clone(e.events)
	f.Steps, f.Preemptions = best.steps, best.preemptions
	return f
}

// attempt is a failing schedule and what it costs to read.
type attempt struct {
	script             []token
	preemptions, steps int
}

func (e *engine) outcome() attempt {
	return attempt{slices.Clone(e.rec), e.used, e.steps}
}

func (a attempt) better(b attempt) bool {
	if a.preemptions != b.preemptions {
		return a.preemptions < b.preemptions
	}
	if len(a.script) != len(b.script) {
		return len(a.script) < len(b.script)
	}
	return a.steps < b.steps
}

// follow runs one schedule by a script.
func (e *engine) follow(script []token) {
	e.bound, e.quiet = Unbounded, false
	r := &replaySearch{script: script}
	r.another()
	e.strat = r
	e.runSchedule()
}

// search looks for a failure of the same sort with at most so many preemptions.
func (e *engine) search(f *Failure, preemptions int) (attempt, bool) {
	s := exhaustive{preemptions}.begin(e)
	deadline := time.Now().Add(shrinkTime)
	for runs := 0; runs < shrinkRuns && (runs%64 != 0 || time.Now().Before(deadline)) && s.another(); runs++ {
		e.strat = s
		e.runSchedule()
		if f.same(e.fail) {
			return e.outcome(), true
		}
	}
	return attempt{}, false
}

const (
	shrinkRuns = 20_000
	shrinkTime = 3 * time.Second
)

// shrink looks for a schedule that fails in the same way with fewer preemptions, fewer switches, fewer steps: it leaves
// out, exchanges and shortens what threads do in a row, and keeps what still fails.
func (e *engine) shrink(f *Failure, best attempt) attempt {
	deadline := time.Now().Add(shrinkTime)
	runs := 0
	try := func(script []token) bool {
		if runs++; runs > shrinkRuns || runs%64 == 0 && time.Now().After(deadline) {
			runs = shrinkRuns
			return false
		}
		e.follow(script)
		if a := e.outcome(); f.same(e.fail) && a.better(best) {
			best = a
			return true
		}
		return false
	}
	for improved := true; improved && runs < shrinkRuns; {
		improved = false
		for _, change := range []func([]token, int) []token{dropToken, swapTokens, joinToken, shortenToken, lengthenToken} {
			for i := 0; i < len(best.script); i++ {
				for {
					s := change(slices.Clone(best.script), i)
					if s == nil || !try(s) {
						break
					}
					improved = true
				}
			}
		}
	}
	return best
}

func dropToken(s []token, i int) []token {
	if i >= len(s) {
		return nil
	}
	return slices.Delete(s, i, i+1)
}

func swapTokens(s []token, i int) []token {
	if i+1 >= len(s) {
		return nil
	}
	s[i], s[i+1] = s[i+1], s[i]
	return s
}

// joinToken moves the next turn of the same actor up to turn i.
func joinToken(s []token, i int) []token {
	for j := i + 2; j < len(s); j++ {
		if s[j].kind == s[i].kind && s[j].id == s[i].id {
			t := s[j]
			return slices.Insert(slices.Delete(s, j, j+1), i+1, t)
		}
	}
	return nil
}

func shortenToken(s []token, i int) []token {
	if i >= len(s) || s[i].n < 2 {
		return nil
	}
	s[i].n--
	return s
}

func lengthenToken(s []token, i int) []token {
	if i >= len(s) || s[i].kind != optThread {
		return nil
	}
	s[i].n++
	return s
}
