//go:build !sync2_std && !sim

package sync2

import (
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// The names through which this package reaches shared memory, the scheduler
// and the clock; the words are in words.go and words_race.go.
func pin()               { rt.Pin() }
func unpin()             { rt.Unpin() }
func canSpin(i int) bool { return rt.CanSpin(i) }
func pause(n uint32)     { asm.Pause(n) }
func yield()             { rt.Yield() }
func fatal(msg string)   { rt.Fatal(msg) }
func cputicks() int64    { return rt.Cputicks() }

func now() time.Time { return time.Now() }

// overdue reports whether a waiter has been overtaken for long enough.
func overdue(waited int64) bool { return waited > sliceLength() }

// mutant is a fault that the simulator can put into this package; here none.
func mutant(string) bool { return false }

// hereTag is the tag of a mutex that becomes contended here: 1 + NUMA node.
func hereTag() uint32 { return 1 }

// table is where the goroutines of this package park.
func table() *parking.Table { return parking.Default() }
