//go:build !sync2_std && !sim

package sync2

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

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
	const goroutines, first, others = 20_000, 2048, 2048 / 73 / 2
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody waits for the bucket's lock, which may take more
	var mu Mutex
	var all sync.WaitGroup
	for parking.Default().Slots() == 0 { // those who wait for the table to be made need more
		contend(&mu, 1)
	}
	mu.Lock()
	before := stacks()
	for range goroutines {
		all.Go(func() {
			mu.Lock()
			mu.Unlock()
		})
	}
	for end := time.Now().Add(time.Minute); parking.Default().Stats().Parked < goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are parked", parking.Default().Stats().Parked, goroutines)
		}
	}
	each := (stacks() - before) / goroutines
	mu.Unlock()
	all.Wait()
	t.Logf("%d bytes of stack for each waiter", each)
	if each < first/2 || each > first+others {
		t.Errorf("%d bytes of stack for each waiter, want %d or little more", each, first)
	}
}

// stacks returns the bytes that are used for stacks.
func stacks() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.StackInuse
}
