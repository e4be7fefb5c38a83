//go:build sim

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// two is a machine of two sockets with two cores each, which share a cache.
func two() Machine {
	return Machine{
		CPUs:        []CPUPlace{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 1, 1, 1}, {3, 1, 1, 1}},
		SameCluster: 20, SameNode: 20, SameSocket: 20, CrossSocket: 100,
		Hit: 1, Locked: 5, Pause: 1, PerSharer: 2, Pipelined: 3, Wakeup: 1000, Clock: 10, Scheduler: 50,
	}
}

// apart is a word on a line of its own.
type apart struct {
	Uint32
	_ [60]byte
}

// costed runs threads on CPUs 0, 1, 2, ... and returns the simulated time at which each ended.
func costed(t *testing.T, threads ...func()) (ends []time.Duration, toll Toll) {
	t.Helper()
	p := Costed{Name: t.Name(), Machine: two()}
	ends = make([]time.Duration, len(threads))
	for i, f := range threads {
		p.CPU = append(p.CPU, i)
		p.Threads = append(p.Threads, func() { f(); ends[i] = Elapsed() })
	}
	toll, err := RunCosted(p)
	if err != nil {
		t.Fatal(err)
	}
	return ends, toll
}

// after delays what a thread does, so that others come first.
func after(d time.Duration, f func()) func() {
	return func() { Work(d); f() }
}

func TestCost_OfOneOperation(t *testing.T) {
	words := make([]apart, 4)
	first := func() { words[0].Load(); words[1].Load() } // who touches a line first has it
	none := func() {}
	load := func() { words[0].Load() }
	locked := func() { words[0].Add(1) }
	for _, c := range []struct {
		name    string
		threads []func()
		want    time.Duration // at which the last of them ends
	}{
		{"hit", []func(){after(500, func() { first(); load() })}, 503},
		{"locked hit", []func(){after(500, func() { first(); locked() })}, 507},
		{"read from the same cache", []func(){first, after(500, load)}, 520},
		{"read from the other socket", []func(){first, none, after(500, load)}, 600},
		{"locked, from the other socket", []func(){first, none, after(500, locked)}, 605},
		{"a copy in the same cache is nearer than the owner", []func(){first, none, after(300, load), after(500, load)}, 520},
		{"to invalidate a copy takes half the way", []func(){first, none, after(400, func() { load(); locked() })}, 555},
		{"a second copy takes a little longer", []func(){first, after(300, load), after(400, func() { load(); locked() })}, 557},
		{"a buffered store is not waited for", []func(){first, none, after(500, func() { StoreRelease32(&words[0].Uint32, 1) })}, 501},
		{"a locked operation waits for the store before it", []func(){first, none,
			after(500, func() { StoreRelease32(&words[0].Uint32, 1); words[2].Add(1) })}, 605},
		{"two buffered stores are under way at once", []func(){first, none,
			after(500, func() { StoreRelease32(&words[0].Uint32, 1); StoreRelease32(&words[1].Uint32, 1); words[2].Add(1) })}, 606},
		{"an early load is under way beside another", []func(){first, none,
			after(500, func() { prefetchForTest(&words[1].Uint32); load(); words[1].Load() })}, 601},
	} {
		clear(words)
		if ends, _ := costed(t, c.threads...); ends[len(ends)-1] != c.want {
			t.Errorf("%s: ends at %v, want %v", c.name, ends[len(ends)-1], c.want)
		}
	}
}

func prefetchForTest(x *Uint32) { current().cost.prefetch(addr32(&x.v)) }

// One line serves one transfer at a time, and a request from near is likelier to be next.
func TestCost_NearRequestersWinMoreOften(t *testing.T) {
	const near, far = 2, 1
	won := map[int]int{}
	for seed := range 300 {
		var word apart
		next := 0
		contend := func(cpu int) func() {
			return after(100, func() {
				if word.Add(1); next == 0 {
					next = cpu
				}
			})
		}
		first := func() { word.Load() }
		second := after(90, func() { word.Add(1) }) // on its way to CPU 3 when the others ask
		_, err := RunCosted(Costed{Machine: two(), CPU: []int{0, 3, near, far}, Threads: []func(){first, second, contend(near), contend(far)},
			Seed: uint64(seed)})
		if err != nil {
			t.Fatal(err)
		}
		won[next]++
	}
	// 1/20 against 1/100.
	if won[near]+won[far] != 300 || won[near] < 220 || won[far] < 20 {
		t.Errorf("near and far won %d and %d of 300, want about 250 and 50", won[near], won[far])
	}
}

func TestCost_SpinnerSeesTheStore(t *testing.T) {
	var word apart
	ends, toll := costed(t, after(5000, func() { word.Store(1) }), func() {
		for word.Load() == 0 {
			Pause()
		}
	})
	if ends[1] < 5000 || ends[1] > 5050 {
		t.Errorf("the spinner goes on at %v, want soon after 5µs", ends[1])
	}
	if toll.Steps > 20 {
		t.Errorf("%d steps for a spin loop without news", toll.Steps)
	}
}

func TestCost_SpinnerWithDeadlineLooksAtTheClock(t *testing.T) {
	var word apart
	ends, _ := costed(t, after(9000, func() { word.Load() }), func() {
		for deadline := Nanotime() + 5000; word.Load() == 0 && Nanotime() < deadline; {
			Pause()
		}
	})
	if ends[1] < 5000 || ends[1] > 7200 {
		t.Errorf("the spinner gives up at %v, want within 2µs of its deadline at 5µs", ends[1])
	}
}

func TestCost_ParkedThreadIsWoken(t *testing.T) {
	var p Parker
	var ready Uint32
	ends, _ := costed(t, func() {
		p.Prepare()
		ready.Store(1)
		p.Park("test")
	}, after(3000, func() {
		ready.Load()
		p.Unpark()
	}))
	if ends[0] < 4000 || ends[0] > 4200 {
		t.Errorf("the sleeper goes on at %v, want 1µs after the Unpark at about 3µs", ends[0])
	}
}

func TestCost_PartOfAWord(t *testing.T) {
	var word apart
	costed(t, func() {
		word.Store(0x1111)
		StoreBits32(&word.Uint32, 0xff, 0x22)
		if got := word.Load(); got != 0x1122 {
			Failf("%#x", got)
		}
		if old := SwapBits32(&word.Uint32, 0xff00, 0x3300); old != 0x1122 || word.Load() != 0x3322 {
			Failf("%#x, then %#x", old, word.Load())
		}
	}, after(1000, func() {
		StoreBits32(&word.Uint32, 0xff, 0x44)
		if got := word.Load(); got != 0x3344 { // part in the store buffer, part in the cache
			Failf("%#x", got)
		}
	}))
}

func TestCost_SameSeedSameResult(t *testing.T) {
	run := func(seed uint64) Toll {
		var word apart
		p := Costed{Machine: two(), CPU: []int{0, 1, 2, 3}, Seed: seed}
		for range p.CPU {
			p.Threads = append(p.Threads, func() {
				for range 50 {
					for !word.CompareAndSwap(0, 1) {
						Pause()
					}
					Work(time.Duration(Rand() % 50))
					word.Store(0)
				}
			})
		}
		toll, err := RunCosted(p)
		if err != nil {
			t.Fatal(err)
		}
		return toll
	}
	if a, b, c := run(1), run(1), run(2); a != b || a == c {
		t.Errorf("seeds 1, 1, 2 give %v, %v, %v", a, b, c)
	}
}

func TestCost_Errors(t *testing.T) {
	var word apart
	forever := func() {
		for word.Load() == 0 {
			Pause()
		}
	}
	endless := func() {
		for {
			word.Load()
		}
	}
	for _, c := range []struct {
		p    Costed
		want string
	}{
		{Costed{Machine: two()}, "has 0 threads and 0 CPUs"},
		{Costed{Machine: two(), CPU: []int{4}, Threads: []func(){forever}}, "CPU 4, the machine has CPUs 0 to 3"},
		{Costed{Machine: two(), CPU: []int{0, 1}, Threads: []func(){forever, forever}}, "2 threads wait for ever"},
		{Costed{Machine: two(), CPU: []int{0}, Threads: []func(){endless}, Limit: time.Microsecond}, "1 threads still run after 1µs"},
	} {
		if _, err := RunCosted(c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want …%s…", err, c.want)
		}
	}
}

func TestCost_FailureInAThreadIsAPanicOfTheRun(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "two owners") {
			t.Errorf("recovered %q", v)
		}
	}()
	costed(t, func() { Failf("two owners") })
	t.Error("no panic")
}

func BenchmarkCost(b *testing.B) {
	var word apart
	p := Costed{Machine: two(), CPU: []int{0, 2}, Limit: 100 * time.Hour}
	for range p.CPU {
		p.Threads = append(p.Threads, func() {
			for range b.N {
				word.Add(1)
			}
		})
	}
	toll, err := RunCosted(p)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(toll.Steps), "ns/step")
}
