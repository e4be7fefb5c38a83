//go:build sim && !sync2_std

package sync2

import (
	"slices"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

// TestModelUnlock_TwoForOneLock pins what the documentation of Mutex says about misuse: a second Unlock is always fatal if
// it begins after the first, and may go unreported only if the two overlap where a quiet mutex is unlocked by a plain store.
func TestModelUnlock_TwoForOneLock(t *testing.T) {
	defer backToReality()
	const fatal, unreported = "fatal: sync: unlock of unlocked mutex", "unreported"
	var m *Mutex
	unlock := func() { m.Unlock() }
	for _, mode := range modes {
		for _, tag := range []uint32{0, 1} {
			program := func(name string, threads ...func()) sim.Program {
				return mode.on(sim.Program{
					Name: name,
					Setup: func() {
						parking.ResetForSim()
						m = new(Mutex)
						m.state.Store(mutexLocked)
						m.tag.Store(tag)
					},
					Threads: threads,
					Outcome: func() string { return unreported },
				})
			}
			check := func(p sim.Program, want ...string) {
				t.Helper()
				r := sim.Cover(t, p, sim.Options{Memory: mode.memory, ExpectFatal: true}, testing.Short())
				if got := r.OutcomeSet(); !slices.Equal(got, want) {
					t.Errorf("%s, tag %d: outcomes %q, want %q", p.Name, tag, got, want)
				}
			}
			check(program("one after the other", func() { unlock(); unlock() }), fatal)
			if mode.unlock != symmetric { // one of them may make the mutex quiet
				check(program("at the same time", unlock, unlock), fatal, unreported)
			} else {
				check(program("at the same time", unlock, unlock), fatal)
			}
		}
	}
}
