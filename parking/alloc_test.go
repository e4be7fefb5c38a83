package parking_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

func TestSteadyState_AllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties caches at random")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties them too
	var tab parking.Table
	ks := keys(t, 2)
	park := 0.0
	if !rt.Pinnable {
		park = 1 // the channel that a wait in this build needs
	}
	sleepers(&tab, ks[1], 1)
	refuse := func() bool { return false }
	self := func() { tab.UnparkOne(ks[0], nil) }
	all := func() { tab.UnparkAll(ks[0], nil) }
	filter := func(parking.ParkToken) parking.FilterOp { return parking.Unpark }
	filtered := func() { tab.UnparkFilter(ks[0], filter, nil) }
	abort := func(int) parking.RequeueOp { return parking.RequeueAbort }
	past := time.Now().Add(-time.Second)
	for _, c := range []struct {
		name string
		max  float64
		f    func()
	}{
		{"Waiting", 0, func() { tab.Waiting(ks[0]) }},
		{"UnparkOne, nobody", 0, self},
		{"UnparkAll, nobody", 0, all},
		{"UnparkFilter, nobody", 0, filtered},
		{"UnparkRequeue", 0, func() { tab.UnparkRequeue(ks[0], ks[1], abort, nil) }},
		{"Park, refused", park, func() { tab.Park(ks[0], refuse, nil, nil, &parking.Options{}) }},
		{"Park and UnparkOne", park, func() { tab.Park(ks[0], nil, self, nil, &parking.Options{}) }},
		{"Park and UnparkAll", park, func() { tab.Park(ks[0], nil, all, nil, &parking.Options{}) }},
		{"Park and UnparkFilter", park, func() { tab.Park(ks[0], nil, filtered, nil, &parking.Options{}) }},
		{"Park, too late", park, func() { tab.Park(ks[0], nil, nil, nil, &parking.Options{Deadline: past}) }},
	} {
		if n := testing.AllocsPerRun(200, c.f); n > c.max {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	tab.UnparkAll(ks[1], nil)
}

// A closure that captures what sync2's do does not escape through Park.
func TestClosures_StayOnTheStack(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties caches at random")
	}
	if !rt.Pinnable {
		t.Skip("a wait allocates its channel in this build")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var tab parking.Table
	k := keys(t, 1)[0]
	word := 0
	n := testing.AllocsPerRun(200, func() {
		local := 1
		tab.Park(k, func() bool { return word == local-1 }, func() {
			tab.UnparkOne(k, func(r parking.UnparkResult) parking.UnparkToken { return parking.UnparkToken(local) })
		}, func(parking.Key, bool) { local++ }, &parking.Options{})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The collector follows no bucket, so parked goroutines, moved stacks and
// records that go back to the cache are its matter alone.
func TestGarbageCollector_ParkedGoroutinesAreKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	placed := fourNodes() // whose buckets are not in the heap at all
	ks := keys(t, 50)
	rounds := effort(t, 40)
	for round := range rounds {
		tab := new(parking.Table)
		if round%2 == 0 {
			tab = placed
		}
		var all []*sleeper
		for i := range 400 {
			grow(i % 40)
			all = append(all, sleep(tab, ks[i%len(ks)], parking.Options{}))
			garbage = make([]byte, 1<<12)
		}
		runtime.GC()
		if err := tab.SetSlots(someSizes[round%len(someSizes)], 0); err != nil {
			t.Fatal(err)
		}
		requeue(tab, ks[0], ks[1], parking.RequeueAll)
		runtime.GC()
		audit(t, tab, len(all))
		for _, k := range ks {
			tab.UnparkAll(k, nil)
		}
		for _, s := range all {
			if r := s.wait(t); r.Outcome != parking.Unparked {
				t.Fatalf("%+v", r)
			}
		}
	}
}

// The same with freed memory overwritten and each marking checked.
func TestGarbageCollector_FreedMemoryClobbered(t *testing.T) {
	if os.Getenv("GODEBUG") == clobber {
		t.Skip("this is the child")
	}
	out, err := child(t, "GODEBUG="+clobber, "-test.short", "-test.run=TestGarbageCollector_Parked|TestConservation|TestTimeoutRaces|TestBeforeSleep")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const clobber = "clobberfree=1,gccheckmark=1"

var garbage []byte

// grow makes the stack large, so that the collector shrinks it again.
func grow(n int) byte {
	var frame [512]byte
	if n > 0 {
		frame[n] = grow(n - 1)
	}
	return frame[n/2]
}
