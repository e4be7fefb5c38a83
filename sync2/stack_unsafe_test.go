//go:build !sync2_std && !sim

package sync2

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// A goroutine begins with 2 KiB of stack, of which the runtime keeps 0.9 for itself. One that does nothing but wait for a
// Mutex makes do with the rest, also if it is the one in 73 that makes records for the others: a stack that doubles is as much
// as everything else that a waiter takes.
func TestMutex_WaitsOnTheFirstStack(t *testing.T) {
	if race.Enabled || !rt.Pinnable {
		t.Skip("this build has frames of its own")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("frames are larger here: those who make records need more")
	}
	if !inChild(t, 1) { // a process without records
		return
	}
	runtime.GOMAXPROCS(1)              // nobody waits for the bucket's lock, which may take more
	const goroutines, fewer = 2000, 10 // than the 27 that make records
	var mu Mutex
	mu.Lock()
	moved := make(chan bool, goroutines)
	for range goroutines {
		go func() {
			var here byte
			before := uintptr(unsafe.Pointer(&here))
			mu.Lock()
			moved <- uintptr(unsafe.Pointer(&here)) != before
			mu.Unlock()
		}()
	}
	for end := time.Now().Add(time.Minute); parking.Default().Stats().Parked < goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are parked", parking.Default().Stats().Parked, goroutines)
		}
	}
	mu.Unlock()
	grown := 0
	for range goroutines {
		if <-moved {
			grown++
		}
	}
	t.Logf("%d of %d stacks grew", grown, goroutines)
	if grown > fewer {
		t.Errorf("%d of %d stacks grew, at most %d should", grown, goroutines, fewer)
	}
}
