//go:build sim

package sim

import (
	"fmt"
	"math"
)

// The preemption bound and the depth of PCT that Cover asks for, and the number of schedules: in short tests, a few.
const (
	coverBound = 2
	coverDepth = 3

	manySchedules = 100_000
	fewSchedules  = 4_000
)

// Cover is Run for the programs that stand for code that ships, which are all explored equally far: with two threads, every
// schedule within two preemptions; with more, the same, or 100,000 schedules of PCT of depth 3 (a few thousand if short).
// o.Strategy chooses between the two, and may ask for more preemptions; nil is the exhaustive search for two threads and PCT
// for more. What is explored less fails the test. No limit of time or number applies, so that a program that has grown shows
// as a test that takes long, and not as one that checks less.
func Cover(t TB, p Program, o Options, short bool) Result {
	t.Helper()
	if o.Strategy == nil {
		o.Strategy = defaultCover(len(p.Threads))
	}
	if lack := unfit(o.Strategy, len(p.Threads)); lack != "" {
		t.Fatalf("sim: %s, %d threads, %s: %s", p.Name, len(p.Threads), o.Strategy, lack)
		return Result{}
	}
	o.Time, o.Budget = 0, math.MaxInt
	_, sampled := o.Strategy.(pct)
	switch {
	case sampled && short:
		o.Budget = fewSchedules
	case sampled:
		o.Budget = manySchedules
	}
	r := Run(t, p, o)
	if replayFromEnv() == "" && !r.Exhausted && (!sampled || r.Schedules < o.Budget) {
		t.Fatalf("sim: %s: explored too little", r)
	}
	return r
}

func defaultCover(threads int) Strategy {
	if threads <= 2 {
		return Exhaustive(coverBound)
	}
	return PCT(coverDepth, 1)
}

// unfit says why a strategy does not come to what Cover asks for; empty: it does.
func unfit(s Strategy, threads int) string {
	switch s := s.(type) {
	case exhaustive:
		if s.preemptions >= 0 && s.preemptions < coverBound {
			return fmt.Sprintf("allow %d preemptions", coverBound)
		}
	case pct:
		switch {
		case threads <= 2:
			return "two threads are to be explored whole"
		case s.depth != coverDepth:
			return fmt.Sprintf("want depth %d", coverDepth)
		}
	default:
		return "want an exhaustive search or PCT"
	}
	return ""
}
