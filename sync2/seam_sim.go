//go:build !sync2_std && sim

package sync2

import (
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

type (
	atomicUint32  = sim.Uint32
	atomicInt32   = sim.Int32
	atomicUint64  = sim.Uint64
	atomicUintptr = sim.Uintptr
)

func canSpin(i int) bool { return rt.CanSpin(i) }
func yield()             { rt.Yield() }
func fatal(msg string)   { rt.Fatal(msg) }
func cputicks() int64    { return rt.Cputicks() }

func pause(n uint32) {
	if sim.Running() {
		sim.Pause()
	} else {
		asm.Pause(n)
	}
}

func now() time.Time {
	if sim.Running() {
		return time.Unix(0, sim.Nanotime())
	}
	return time.Now()
}

// overdue is both, in some schedule each.
func overdue(waited int64) bool {
	if sim.Running() {
		return sim.Choose(2) == 1
	}
	return waited > handoffAfter
}

func mutant(name string) bool { return sim.Mutant(name) }

func table() *parking.Table { return parking.Default() }
