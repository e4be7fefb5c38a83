package torture

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A disturbance changes what locks depend on.
type disturbance struct {
	name  string
	every time.Duration // on average
	// begin returns how to strike, and how to leave everything as it was. An error: it cannot be had, and why.
	begin func(s *session) (strike func(luck *rand.Rand) error, restore func(), err error)
}

var disturbances = []disturbance{
	{"procs", 150 * time.Millisecond, disturbProcs},
	{"gc", 80 * time.Millisecond, disturbGC},
	{"slots", 30 * time.Millisecond, disturbSlots},
	{"affinity", 200 * time.Millisecond, disturbAffinity},
	{"stop", 1500 * time.Millisecond, disturbByStopping},
}

// Disturbances returns the names that Config.Without may have.
func Disturbances() []string {
	var names []string
	for _, d := range disturbances {
		names = append(names, d.name)
	}
	return names
}

func disturbancesBut(without []string) ([]disturbance, error) {
	for _, name := range without {
		if !slices.Contains(Disturbances(), name) {
			return nil, fmt.Errorf("unknown disturbance %q: want one of %s", name, strings.Join(Disturbances(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(disturbances), func(d disturbance) bool { return slices.Contains(without, d.name) }), nil
}

// disturb starts the disturbances. calm ends them and restores what they changed.
func (s *session) disturb(chosen []disturbance) (calm func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, d := range chosen {
		strike, restore, err := d.begin(s)
		if err != nil {
			fmt.Fprintf(s.Log, "torture: without %s: %v\n", d.name, err)
			continue
		}
		luck := rand.New(rand.NewPCG(s.Seed, uint64(1<<32+i)))
		running.Go(func() {
			defer restore()
			s.strikeAgain(d, strike, luck, stop)
		})
	}
	return func() { close(stop); running.Wait() }
}

func (s *session) strikeAgain(d disturbance, strike func(*rand.Rand) error, luck *rand.Rand, stop <-chan struct{}) {
	for {
		timer := time.NewTimer(time.Duration(luck.ExpFloat64() * float64(d.every)))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := strike(luck); err != nil {
			fmt.Fprintf(s.Log, "torture: no more %s: %v\n", d.name, err)
			return
		}
		s.struck.add(d.name)
	}
}

// disturbProcs is locktorture's taking CPUs off line.
func disturbProcs(*session) (func(*rand.Rand) error, func(), error) {
	before := runtime.GOMAXPROCS(0)
	most := 4 * runtime.NumCPU()
	strike := func(luck *rand.Rand) error {
		runtime.GOMAXPROCS(1 + luck.IntN(most))
		return nil
	}
	return strike, func() { runtime.GOMAXPROCS(before) }, nil
}

// disturbGC makes garbage and collects it, alone or in bursts, and lets the collector run on its own at any moment.
func disturbGC(*session) (func(*rand.Rand) error, func(), error) {
	before := debug.SetGCPercent(100)
	strike := func(luck *rand.Rand) error {
		debug.SetGCPercent([]int{1, 10, 100}[luck.IntN(3)])
		garbage := make([][]byte, 64)
		for i := range garbage {
			garbage[i] = make([]byte, 1+luck.IntN(16<<10))
		}
		for range 1 + luck.IntN(3) {
			runtime.GC()
		}
		runtime.KeepAlive(garbage)
		return nil
	}
	return strike, func() { debug.SetGCPercent(before) }, nil
}

// disturbSlots resizes the table that goroutines are parked in.
func disturbSlots(s *session) (func(*rand.Rand) error, func(), error) {
	table := s.locks.table
	if table == nil {
		return nil, nil, fmt.Errorf("the waiters of %s are in no table", s.locks.name)
	}
	const largest = 14
	strike := func(luck *rand.Rand) error { return table.SetSlots(2<<luck.IntN(largest), 0) }
	return strike, func() {}, nil
}
