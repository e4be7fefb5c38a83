//go:build sim

package sim

// Mutant reports whether the fault of this name is present in the run the caller belongs to: Options.Mutant names it. The
// seam of the default build has a function of the same name that returns false and inlines to nothing, so that
//
//	if mutant("cond: P before count") { ... }
//
// leaves no trace there. Outside a run it is false.
func Mutant(name string) bool {
	e := engineHere()
	if e == nil || e.opt.Mutant != name {
		return false
	}
	e.consulted = true
	return true
}
