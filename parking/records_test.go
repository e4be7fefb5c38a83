//go:build !sim

package parking_test

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// The runtime has a size of allocations of 8 KiB: records shall fill one and not
// spill into the next.
func TestRecords_FillAnAllocation(t *testing.T) {
	if !rt.Pinnable || strconv.IntSize != 64 {
		t.Skip("this build has records of another size")
	}
	if parking.RecordBytes > 8192 || parking.RecordBytes < 8192-112 {
		t.Errorf("a batch of records takes %d bytes", parking.RecordBytes)
	}
}

// Records of goroutines that have woken serve the next ones, wherever those run:
// between the Ps they travel by the magazine, and the few that stay behind in a P's
// rack survive a collection.
func TestRecords_ComeBack(t *testing.T) {
	if !rt.Pinnable || race.Enabled {
		t.Skip("this build has no magazines, or the race detector empties the depot at random")
	}
	const goroutines = 2000
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var tab parking.Table
	key := keys(t, 1)[0]
	round := func() {
		all := make([]*sleeper, goroutines)
		for i := range all {
			all[i] = sleep(&tab, key, parking.Options{})
		}
		tab.UnparkAll(key, nil)
		for _, s := range all {
			s.wait(t)
		}
	}
	// The first rounds make them, and leave a few on each P where others do not get them.
	made := uint64(goroutines)
	for n := 0; n < 20 && made > 2; n++ { // something else may be as large
		before := allocationsOf8KiB()
		round()
		made = allocationsOf8KiB() - before
	}
	if made > 2 {
		t.Errorf("%d of about %d magazines were made again", made, goroutines/73)
	}

	runtime.GC()
	runtime.GC()
	one := testing.AllocsPerRun(50, func() {
		tab.Park(key, nil, func() { tab.UnparkOne(key, nil) }, nil, &parking.Options{})
	})
	if one != 0 {
		t.Errorf("%v allocations after a collection", one)
	}
}

func allocationsOf8KiB() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	for _, class := range stats.BySize {
		if class.Size == 8192 {
			return class.Mallocs
		}
	}
	return 0
}

// Several goroutines at once may find their P without a rack.
func TestRecords_MorePsThanRacks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var tab parking.Table
	ks := keys(t, 8)
	for range effort(t, 40) {
		var parkers sync.WaitGroup
		for _, k := range ks {
			parkers.Go(func() {
				for range 50 {
					tab.Park(k, nil, func() { tab.UnparkOne(k, nil) }, nil, &parking.Options{})
					parking.ForgetRacks()
				}
			})
		}
		parkers.Wait()
	}
	audit(t, &tab, 0)
}
