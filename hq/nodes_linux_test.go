//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/topology"
)

// A load is a goroutine on each CPU of some domains that uses a lock.
type load struct {
	domains []topology.Domain
	section uint32        // how long one is
	pause   time.Duration // of a goroutine between its sections
	lock    *Lock
	stop    atomic.Bool
	workers sync.WaitGroup
	counter int // guarded by lock
	total   atomic.Int64
}

func (ld *load) start(t *testing.T, l *Lock) {
	ld.lock = l
	for _, d := range ld.domains {
		for cpu := range d.CPUs.All() {
			ld.workers.Go(func() {
				if err := numatest.On(slices.Values([]int{cpu}), ld.work); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (ld *load) work() {
	for n := int64(0); ; n++ {
		if ld.stop.Load() {
			ld.total.Add(n)
			return
		}
		Locate()
		ld.lock.Lock()
		ld.counter++
		pause(ld.section)
		ld.lock.Unlock()
		time.Sleep(ld.pause)
	}
}

// end stops the load and checks that sections excluded each other.
func (ld *load) end(t *testing.T) {
	t.Helper()
	ld.stop.Store(true)
	ld.workers.Wait()
	if int64(ld.counter) != ld.total.Load() {
		t.Errorf("%d sections ran, the counter says %d", ld.total.Load(), ld.counter)
	}
}

// sections returns how many the load has run.
func (ld *load) sections() int {
	ld.lock.Lock()
	defer ld.lock.Unlock()
	return ld.counter
}

// minus returns what has been counted since before.
func (s Stats) minus(before Stats) Stats {
	s.Inflations -= before.Inflations
	s.Deflations -= before.Deflations
	s.LocalHandOvers -= before.LocalHandOvers
	s.RemoteHandOvers -= before.RemoteHandOvers
	s.Steals -= before.Steals
	s.Abandons -= before.Abandons
	s.Skips -= before.Skips
	return s
}

func (s Stats) handOvers() uint64 { return s.LocalHandOvers + s.RemoteHandOvers }

// await waits until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for begin := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("not after a minute: %s; %+v", what, ReadStats())
		}
	}
}

// severalNodes returns the domains of a machine with several NUMA nodes, and
// makes Locks know it; tunables are such that it can go to mode HQ.
func severalNodes(t *testing.T) (domains []topology.Domain) {
	Load()
	machine := located.Load()
	numatest.Need(t, machine.NUMANodes().Len())
	for i := range machine.NumDomains() {
		domains = append(domains, machine.Domain(i))
	}
	tune(t, func(u *Tunables) {
		u.Streak = 1 // of the two CPUs of a node, one can follow the other
		if numatest.Emulated() {
			// The emulator's threads take turns on fewer CPUs, for milliseconds each: few
			// waiters are there at a time, and they leave before many hand-overs.
			// Under the shipped budget no load makes them meet in the queue, whatever the
			// length of sections: that takes an owner, a head and one behind it within
			// 30 us, and with two CPUs for the emulator one of the three does not run.
			// Hundreds of thousands of sections then see no hand-over at all.
			u.Budget, u.LocalTime, u.HandOvers, u.Crossings = 200*time.Millisecond, time.Second, 5, 0
		}
	})
	return domains
}

// Where they hardly ever meet, or all are on one node, a lock stays in mode Q.
func TestSeveralNodes_UnderLightLoadModeQStays(t *testing.T) {
	domains := severalNodes(t)
	for name, light := range map[string]*load{
		"all nodes, seldom": {domains: domains, section: 50, pause: 2 * time.Millisecond},
		"one node, often":   {domains: domains[:1], section: 50},
	} {
		t.Run(name, func(t *testing.T) {
			before := ReadStats()
			light.start(t, new(Lock))
			await(t, "100 sections", func() bool { return light.sections() >= 100 })
			light.end(t)
			s := ReadStats().minus(before)
			t.Logf("%d sections: %+v", light.total.Load(), s)
			if s.Inflations != 0 || light.lock.InHQ() {
				t.Error("it went to mode HQ")
			}
			checkQuiet(t, light.lock)
		})
	}
}

// With waiters on all CPUs of all nodes a lock goes to mode HQ. A larger part of
// its hand-overs is inside a node then. It goes back when no more than two CPUs
// meet.
func TestSeveralNodes_UnderLoadModeHQ(t *testing.T) {
	domains := severalNodes(t)
	tune(t, func(u *Tunables) { u.Votes = 1e6 }) // the emulator's queues run empty under any load
	l, begin := new(Lock), ReadStats()
	heavy := &load{domains: domains, section: 50}
	heavy.start(t, l)
	await(t, "mode HQ", l.InHQ)
	inflated := ReadStats()
	inQ := inflated.minus(begin)
	t.Logf("in mode Q: %+v", inQ)
	var inHQ Stats
	await(t, "30 hand-overs in mode HQ, one of them to another node", func() bool {
		inHQ = ReadStats().minus(inflated)
		return inHQ.handOvers() >= 30 && inHQ.RemoteHandOvers > 0
	})
	t.Logf("in mode HQ: %+v", inHQ)
	heavy.end(t)
	if inHQ.Deflations != 0 || inHQ.LocalHandOvers*inQ.handOvers() <= inQ.LocalHandOvers*inHQ.handOvers() {
		t.Error("the nodes' queues were not served by turns")
	}

	tune(t, func(u *Tunables) { u.Votes = defaults.Votes })
	light := &load{domains: domains[:1], section: 5000, pause: 2 * time.Millisecond} // two meet, and the queue runs empty
	light.start(t, l)
	await(t, "mode Q", func() bool { return !l.InHQ() })
	light.end(t)
	checkQuiet(t, l)
	if s := ReadStats().minus(begin); s.Inflations == 0 || s.Inflations != s.Deflations || ReadStats().InHQ != 0 {
		t.Errorf("after the load: %+v, in mode HQ %d", s, ReadStats().InHQ)
	}
}
