//go:build sim

package numasim

import "testing"

func rate(t *testing.T, r HashRun) float64 {
	t.Helper()
	r.Seed = 1
	x, err := r.Rate()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d threads, %d slots, aligned %v, %s: %.0f waits per second and thread", r.Threads, r.Slots, r.Aligned, r.Lookup, x)
	return x
}

func TestHash_SlotsDoubleThroughputUntilThereAreAsManyAsCPUs(t *testing.T) {
	last := 0.0
	for slots := 4; slots <= 4096; slots *= 2 {
		r := rate(t, HashRun{Machine: milan, Threads: 240, Slots: slots, Aligned: true, Lookup: Global, Words: 40})
		switch growth := r / last; {
		case last == 0:
		case slots <= 256 && (growth < 1.5 || growth > 3):
			t.Errorf("%d slots: %.2f times the half of them, want about twice", slots, growth)
		case slots > 1024 && (growth < 0.95 || growth > 1.2):
			t.Errorf("%d slots: %.2f times the half of them, want no change", slots, growth)
		}
		last = r
	}
}

func TestHash_LargerAndAlignedTables(t *testing.T) {
	for _, threads := range []int{64, 80} {
		last := 0.0
		for _, table := range []struct {
			slots   int
			aligned bool
		}{{256, false}, {256, true}, {20480, false}, {20480, true}} {
			r := rate(t, HashRun{Machine: eightSockets, Threads: threads, Slots: table.slots, Aligned: table.aligned, Lookup: Global, Words: 200})
			if r <= last {
				t.Errorf("%d threads: no better than the table before", threads)
			}
			last = r
		}
	}
}

func TestHash_LookupDesigns(t *testing.T) {
	at := func(threads, slots int, l Lookup) float64 {
		return rate(t, HashRun{Machine: skylake, Threads: threads, Slots: slots, Aligned: true, Lookup: l, Words: 60})
	}
	for _, slots := range []int{256, 1024, 4096} {
		if at(112, slots, Pair) <= at(112, slots, BackPointer) {
			t.Errorf("%d slots: a pair is no faster than a back pointer", slots)
		}
	}
	for _, slots := range []int{128, 8192} {
		if at(32, slots, Immutable) <= 2*at(32, slots, Refcount) {
			t.Errorf("%d slots: no count is not twice as fast as one", slots)
		}
	}
}

func TestHashCells_CoverEveryTable(t *testing.T) {
	if few, all := len(HashCells(true)), len(HashCells(false)); all != 12+17+10+4 || few >= all {
		t.Errorf("%d cells, few of them %d, want 43", all, few)
	}
}
