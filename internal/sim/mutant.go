//go:build sim

package sim

import "os"

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
