//go:build !sim

package parking_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// deep calls f with some of the stack in use, and reports whether the stack has
// moved when f returns: then it had not been enough.
//
//go:noinline
func deep(frames int, f func()) (moved bool) {
	var pad [40]byte
	before := uintptr(unsafe.Pointer(&pad))
	if frames > 0 {
		moved = deep(frames-1, f)
	} else {
		f()
	}
	return moved || uintptr(unsafe.Pointer(&pad)) != before
}

// A goroutine begins with 2 KiB of stack, of which the runtime keeps 0.9 for
// itself. Park has to do with what its callers, sync2's primitives among them,
// leave of the rest: a stack that has doubled is most of what a parked goroutine
// takes. The few that fetch or make records for the others may grow.
func TestPark_StackFitsIntoTheFirst(t *testing.T) {
	if race.Enabled || !rt.Pinnable {
		t.Skip("this build has frames of its own")
	}
	const goroutines = 2000
	for _, procs := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(procs)
		grown := goroutines
		for round := 0; round < 5 && grown > goroutines/20; round++ { // who waits for a bucket may need more
			grown = grownStacks(t, goroutines)
		}
		runtime.GOMAXPROCS(before)
		t.Logf("%d Ps: %d of %d stacks grew", procs, grown, goroutines)
		if grown > goroutines/20 {
			t.Errorf("%d Ps: %d of %d stacks grew", procs, grown, goroutines)
		}
	}
}

// grownStacks has goroutines park and returns how many of their stacks grew.
func grownStacks(t *testing.T, goroutines int) (grown int) {
	const frames = 4
	var tab parking.Table
	if err := tab.SetSlots(1024, 0); err != nil {
		t.Fatal(err)
	}
	ks := keys(t, goroutines/4) // few wait for the lock of a bucket, which takes more
	results := make(chan bool, goroutines)
	for i := range goroutines {
		go func() {
			opts := parking.Options{}
			results <- deep(frames, func() { tab.Park(ks[i%len(ks)], nil, nil, nil, &opts) })
		}()
	}
	eventually(t, "all are parked", func() bool { return tab.Stats().Parked == goroutines })
	for _, k := range ks {
		tab.UnparkAll(k, nil)
	}
	for range goroutines {
		if <-results {
			grown++
		}
	}
	return grown
}
