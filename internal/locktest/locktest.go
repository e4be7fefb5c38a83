// Package locktest is one harness for every lock of this module: package sync's, sync2's, hq's, the toy locks that
// serve as reference, and locks that are broken on purpose. A lock is seen through an interface, a check is a function
// that returns an error, and the same checks run over all of them.
//
// A check never relies on luck alone. Where the wrong behaviour needs a goroutine to be asleep, the check waits until
// the runtime says that it is (see [Sleeper]); where it needs an unlucky interleaving, many short seeded rounds are
// run inside a time box. A goroutine that has not come back after [Options].Patience is reported as lost.
//
// The seed of a run is logged; HQSYNC_SEED=<seed> repeats its random choices, though not the scheduler's.
//
// [Model] is a slow and obviously correct lock, [Faults] the ways in which it can be broken: every check must pass on
// the first and at least one must fail on each of the second, which is what this package's own tests are about.
package locktest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// SeedEnv names the environment variable that fixes the seed of every harness run.
const SeedEnv = "HQSYNC_SEED"

// Mutex is what every exclusive lock under test offers; the method set of *sync.Mutex.
type Mutex interface {
	Lock()
	TryLock() bool
	Unlock()
}

// RWMutex is what every reader-writer lock under test offers; the method set of *sync.RWMutex without RLocker.
type RWMutex interface {
	Mutex
	RLock()
	TryRLock() bool
	RUnlock()
}

// Property is something a lock may or may not promise. A check that needs a property is skipped, by name, for a lock
// that lacks it.
type Property uint

const (
	// Blocking: a critical section may sleep, yield and be entered from any number of goroutines. Spin locks whose
	// holder is pinned to its P lack it.
	Blocking Property = 1 << iota
	// AnyUnlocker: the lock has no owner; a goroutine may unlock what another one locked.
	AnyUnlocker
	// FIFO: waiters that fell asleep one after another acquire in that order as long as nobody new arrives.
	FIFO
	// Fair: a waiter gets the lock within Patience even if another goroutine takes it in a closed loop.
	Fair
	// WriterPreference: a waiting writer keeps new readers out.
	WriterPreference
	// PhaseFair: readers that waited while a writer was inside go in before the next writer.
	PhaseFair
)

var propertyNames = []string{"Blocking", "AnyUnlocker", "FIFO", "Fair", "WriterPreference", "PhaseFair"}

func (p Property) String() string {
	s := ""
	for i, name := range propertyNames {
		if p&(1<<i) != 0 {
			s += "+" + name
		}
	}
	if s == "" {
		return "nothing"
	}
	return s[1:]
}

// Options bound a run. The zero value is a run of moderate length against a lock that promises everything.
type Options struct {
	// Lacks lists what the lock does not promise.
	Lacks Property
	// Seed of the random choices; 0 takes it from HQSYNC_SEED or, without that, from the clock.
	Seed uint64
	// Duration is the time box of each randomised check; 0 means 250 ms, a fifth of it under -short.
	Duration time.Duration
	// Patience is how long a goroutine may make no progress before it counts as lost; 0 means 30 s.
	Patience time.Duration
	// Goroutines is the number of workers of each randomised check; 0 means 4 per P, at least 8.
	Goroutines int
	// Hidden keeps the guarded data from the race detector. Locks that are broken on purpose set it, so that the harness
	// and not the detector has to notice.
	Hidden bool
}

func (o Options) withDefaults() Options {
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	if o.Duration == 0 {
		o.Duration = 250 * time.Millisecond
		if testing.Testing() && testing.Short() {
			o.Duration /= 5
		}
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Goroutines == 0 {
		o.Goroutines = max(8, 4*runtime.GOMAXPROCS(0))
	}
	return o
}

// Seed returns the seed for a test: HQSYNC_SEED if it is set, else one from the clock. It logs the seed, and fails the
// test if the variable does not hold a positive number.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s, ok := os.LookupEnv(SeedEnv); ok {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil || n == 0 {
			t.Fatalf("locktest: %s=%q: want a number from 1 to %d", SeedEnv, s, uint64(1<<64-1))
		}
		seed = n
	}
	t.Logf("locktest: %s=%d repeats the random choices of this run", SeedEnv, seed)
	return seed
}

// A Check looks for one kind of wrong behaviour in a fresh lock.
type Check[L Mutex] struct {
	Name  string
	Needs Property
	run   func(o Options, l L) error
}

// Run returns an error if the lock made by newLock shows the wrong behaviour, and nil for a lock that lacks a property
// the check needs.
func (c Check[L]) Run(o Options, newLock func() L) error {
	if o.Lacks&c.Needs != 0 {
		return nil
	}
	o = o.withDefaults()
	if err := c.runWatched(o, newLock()); err != nil {
		return fmt.Errorf("locktest: %s: %w (%s=%d)", c.Name, err, SeedEnv, o.Seed)
	}
	return nil
}

// runWatched keeps the caller out of the hands of a lock that blocks where it must not.
func (c Check[L]) runWatched(o Options, l L) error {
	result := make(chan error, 1)
	go func() { result <- c.run(o, l) }()
	limit := o.Duration + 3*o.Patience
	select {
	case err := <-result:
		return err
	case <-time.After(limit):
		return fmt.Errorf("lost: the check itself has not come back within %v", limit)
	}
}

// TestMutex runs every mutex check over fresh locks as subtests of t.
func TestMutex(t *testing.T, o Options, newLock func() Mutex) {
	t.Helper()
	runAll(t, o, MutexChecks(), newLock)
}

// TestRWMutex runs every mutex check over the writer side of fresh locks, then every reader-writer check.
func TestRWMutex(t *testing.T, o Options, newLock func() RWMutex) {
	t.Helper()
	t.Run("Writer", func(t *testing.T) {
		runAll(t, o, MutexChecks(), func() Mutex { return newLock() })
	})
	runAll(t, o, RWMutexChecks(), newLock)
}

func runAll[L Mutex](t *testing.T, o Options, checks []Check[L], newLock func() L) {
	t.Helper()
	if o.Seed == 0 {
		o.Seed = Seed(t)
	}
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if missing := o.Lacks & c.Needs; missing != 0 {
				t.Skipf("locktest: this lock does not promise %v", missing)
			}
			if err := c.Run(o, newLock); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// rng returns the random source of worker id.
func (o Options) rng(id int) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, uint64(id))) }
