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
func pin()             { rt.Pin() }
func unpin()           { rt.Unpin() }
func yield()           { rt.Yield() }
func fatal(msg string) { rt.Fatal(msg) }
func cputicks() int64  { return rt.Cputicks() }

func now() time.Time { return time.Now() }

// looksMost is how often a contender tries a locked mutex before it parks.
const looksMost = 4

// pauseFor waits for d ns, or less if there is no clock of ns, or one that stands
// still: the portable one does in a bubble of testing/synctest.
func pauseFor(d int64) {
	const hints, atLeast = 8, 20 // between two looks at the clock; ns that this takes
	end := asm.Ticks() + uint64(d)*asm.TicksPerMicrosecond()/1000
	for looks := d / atLeast; looks > 0 && int64(end-asm.Ticks()) > 0; looks-- {
		asm.Pause(hints)
	}
}

// mutant is a fault that the simulator can put into this package; here none.
func mutant(string) bool { return false }

// hereTag is the tag of a mutex that becomes contended here: 1 + NUMA node.
func hereTag() uint32 { return 1 }

// table is where the goroutines of this package park.
func table() *parking.Table { return parking.Default() }
