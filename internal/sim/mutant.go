//go:build sim

package sim

import (
	"fmt"
	"os"
	"strings"
)

// Mutant reports whether the fault of this name is present in the run the caller belongs to: Options.Mutant names it. The
// seam of the default build has a function of the same name that returns false and inlines to nothing, so that
//
//	if mutant("cond: P before count") { ... }
//
// leaves no trace there. Outside a run the environment variable HQSYNC_MUTANT names the fault, so that ordinary tests can
// be run with it: scripts/mutants does.
func Mutant(name string) bool {
	e := engineHere()
	if e == nil {
		return name == mutantOutside
	}
	if e.opt.Mutant != name {
		return false
	}
	e.consulted = true
	return true
}

var mutantOutside = os.Getenv("HQSYNC_MUTANT")

// A Fault is a seeded fault with a program that finds it.
type Fault struct {
	Mutant  string
	Program Program
	Options Options
}

// RunFaults fails the test unless each fault is found, and its program passes as many schedules without it; and unless some
// need more than one schedule, since finding the others takes no exploration. The last line that it logs counts them.
func RunFaults(t TB, faults []Fault) {
	t.Helper()
	var survived, wrong []string
	atOnce := 0
	for _, f := range faults {
		o := f.Options
		o.Mutant = f.Mutant
		r := Explore(f.Program, o)
		if r.Failure == nil {
			t.Logf("%s: survived: %s", f.Mutant, r)
			survived = append(survived, f.Mutant)
			continue
		}
		t.Logf("%s: killed: %s", f.Mutant, r)
		if r.Schedules == 1 {
			atOnce++
		}
		o.Mutant, o.Budget = "", r.Schedules
		if r := Explore(f.Program, o); r.Failure != nil {
			wrong = append(wrong, fmt.Sprintf("%s: the program fails without it too: %s", f.Mutant, r))
		}
	}
	t.Logf("with one schedule each: %d killed, %d survived", atOnce, len(faults)-atOnce)
	t.Logf("mutants: %d killed, %d survived", len(faults)-len(survived), len(survived))
	switch {
	case len(survived) > 0:
		t.Fatalf("survived: %q", survived)
	case len(wrong) > 0:
		t.Fatalf("%s", strings.Join(wrong, "\n"))
	case atOnce == len(faults):
		t.Fatalf("one schedule finds them all")
	}
}
