//go:build race

package sync2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/sync2"
)

// The race detector must see through sync2 what it sees through package sync: every edge, so that it reports nothing
// falsely, and no other, so that it misses nothing.

// raceOptions make the detector report every race, not only the first of those that look alike. Races do not fail the
// process.
const raceOptions = "GORACE=suppress_equal_stacks=0 suppress_equal_addresses=0 exitcode=0 atexit_sleep_ms=0"

// raceFiles are the tests of the race detector that are about package sync.
var raceFiles = []string{"main_test.go", "mutex_test.go", "rwmutex_test.go", "waitgroup_test.go", "sync_test.go", "pool_test.go"}

// TestRaceDetectorVerdicts runs the detector's own tests. Their names say whether there is a race.
func TestRaceDetectorVerdicts(t *testing.T) {
	g := needGo(t)
	t.Parallel()
	want, got := raceVerdicts(t, g, control), raceVerdicts(t, g, ours)
	if len(want) < 40 {
		t.Fatalf("only %d tests ran on package sync: %v", len(want), want)
	}
	for name, race := range want {
		t.Run(name, func(t *testing.T) {
			if race != strings.HasPrefix(name, "TestRace") && !strings.Contains(name, "Failing") {
				t.Errorf("race reported with package sync: %v", race)
			}
			if have, ran := got[name]; !ran || have != race {
				t.Errorf("ran with sync2: %v, race reported: %v; with package sync: %v", ran, have, race)
			}
		})
	}
}

// raceVerdicts returns for each test whether the detector reported a race.
func raceVerdicts(t *testing.T, g *goTool, s subject) map[string]bool {
	t.Helper()
	files := map[string]string{}
	for _, name := range raceFiles {
		files[name] = onSubject(t, s, name, g.source(t, "runtime/race/testdata/"+name))
	}
	m := g.newModule(t, "race", files)
	args := append([]string{"test", "-json", "-vet=off", "-count=1"}, buildFlags()...)
	// One P, as in the detector's own runs: there the order of events is nearly fixed.
	r := m.run(t, 5*time.Minute, []string{"GOMAXPROCS=1", raceOptions}, append(args, ".")...)
	if !strings.Contains(r.stdout, "ALL TESTS COMPLETE") {
		t.Fatalf("not all tests ran on %s: %v", s.name, r)
	}
	verdicts := map[string]bool{}
	for name, v := range parseVerdicts(t, r.stdout) {
		verdicts[name] = strings.Contains(v.output, "DATA RACE")
	}
	return verdicts
}

// steps let goroutines follow each other without the detector noticing: step n is the business of whoever waits for n.
type steps struct{ now int }

//go:norace
//go:noinline
func (s *steps) get() int { return s.now }

//go:norace
//go:noinline
func (s *steps) next() { s.now++ }

func (s *steps) await(n int) {
	for s.get() < n {
		time.Sleep(50 * time.Microsecond)
	}
}

// An edgeCase has two goroutines that write the same word one after the other.
type edgeCase struct {
	name string
	run  func(s subject, word *int)
}

// inTurn runs the functions in goroutines of their own, one after the other, without an edge from one to the next. The
// goroutines exist from the beginning.
func inTurn(fs ...func()) {
	var s steps
	done := make(chan struct{})
	for i, f := range fs {
		go func() {
			s.await(i)
			f()
			s.next()
			s.await(len(fs))
			done <- struct{}{}
		}()
	}
	for range fs {
		<-done
	}
}

// parkedIn runs f in a goroutine of its own from the beginning and returns a function that waits, unnoticed by the
// detector, until it is asleep.
func parkedIn(start *steps, f func()) (waitAsleep func(), done <-chan struct{}) {
	s := locktest.Start(func() { start.await(1); f() })
	return func() { start.next(); sleepUnnoticed(s) }, s.Done()
}

var edgeCases = []edgeCase{
	{"UnlockThenLock", func(s subject, word *int) {
		m := s.newMutex()
		write := func() { m.Lock(); *word++; m.Unlock() }
		inTurn(write, write)
	}},
	{"UnlockThenTryLock", func(s subject, word *int) {
		m := s.newMutex()
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() {
			if m.TryLock() {
				*word++
				m.Unlock()
			}
		})
	}},
	{"FailedTryLockOrdersNothing", func(s subject, word *int) {
		m := s.newMutex()
		inTurn(func() { m.Lock(); m.Unlock(); m.Lock(); *word++ }, func() { m.TryLock(); *word++ })
	}},
	{"LockWithoutUnlockOrdersNothing", func(s subject, word *int) {
		m := s.newMutex()
		inTurn(func() { *word++; m.TryLock() }, func() { m.TryLock(); *word++ })
	}},
	{"TwoMutexes", func(s subject, word *int) {
		m1, m2 := s.newMutex(), s.newMutex()
		inTurn(func() { m1.Lock(); *word++; m1.Unlock() }, func() { m2.Lock(); *word++; m2.Unlock() })
	}},
	{"UnlockToASleeper", func(s subject, word *int) {
		m := s.newMutex()
		var start steps
		asleep, done := parkedIn(&start, func() { m.Lock(); *word++; m.Unlock() })
		inTurn(func() { m.Lock(); *word++; asleep(); m.Unlock() })
		<-done
	}},
	{"ReadersDoNotOrderEachOther", func(s subject, word *int) {
		m := s.newRWMutex()
		write := func() { m.RLock(); *word++; m.RUnlock() }
		inTurn(write, write)
	}},
	{"TryRLockDoesNotOrderReaders", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.RLock(); *word++; m.RUnlock() }, func() { m.TryRLock(); *word++; m.RUnlock() })
	}},
	{"RUnlockThenLock", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.RLock(); *word++; m.RUnlock() }, func() { m.Lock(); *word++; m.Unlock() })
	}},
	{"RUnlockThenRWTryLock", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.RLock(); *word++; m.RUnlock() }, func() { m.TryLock(); *word++; m.Unlock() })
	}},
	{"FailedRWTryLockOrdersNoWriter", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.RLock() }, func() { *word++; m.TryLock() }, func() { m.RUnlock(); m.Lock(); *word++; m.Unlock() })
	}},
	{"RWUnlockThenFailedRWTryLock", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.Lock(); *word++; m.Unlock(); m.RLock() }, func() { m.TryLock(); *word++ })
	}},
	{"RWUnlockThenRLock", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() { m.RLock(); *word++; m.RUnlock() })
	}},
	{"RWUnlockThenTryRLock", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() { m.TryRLock(); *word++; m.RUnlock() })
	}},
	{"FailedTryRLockOrdersNothing", func(s subject, word *int) {
		m := s.newRWMutex()
		inTurn(func() { m.Lock(); m.Unlock(); m.Lock(); *word++ }, func() { m.TryRLock(); *word++ })
	}},
	{"RWUnlockToASleepingReader", func(s subject, word *int) {
		m := s.newRWMutex()
		var start steps
		asleep, done := parkedIn(&start, func() { m.RLock(); *word++; m.RUnlock() })
		inTurn(func() { m.Lock(); *word++; asleep(); m.Unlock() })
		<-done
	}},
	{"RUnlockToASleepingWriter", func(s subject, word *int) {
		m := s.newRWMutex()
		var start steps
		asleep, done := parkedIn(&start, func() { m.Lock(); *word++; m.Unlock() })
		inTurn(func() { m.RLock(); *word++; asleep(); m.RUnlock() })
		<-done
	}},
	{"SignalWithTheLock", func(s subject, word *int) {
		m := s.newMutex()
		c := s.newCond(m)
		var start steps
		asleep, done := parkedIn(&start, func() { m.Lock(); c.Wait(); *word++; m.Unlock() })
		inTurn(func() { asleep(); m.Lock(); *word++; c.Signal(); m.Unlock() })
		<-done
	}},
	{"BroadcastWithTheLock", func(s subject, word *int) {
		m := s.newMutex()
		c := s.newCond(m)
		var start steps
		asleep, done := parkedIn(&start, func() { m.Lock(); c.Wait(); *word++; m.Unlock() })
		inTurn(func() { asleep(); m.Lock(); *word++; c.Broadcast(); m.Unlock() })
		<-done
	}},
	{"SignalWithoutTheLock", func(s subject, word *int) {
		m := s.newMutex()
		c := s.newCond(m)
		var start steps
		asleep, done := parkedIn(&start, func() { m.Lock(); c.Wait(); *word++; m.Unlock() })
		inTurn(func() { asleep(); *word++; c.Signal() })
		<-done
	}},
	{"DoneThenWait", func(s subject, word *int) {
		wg := s.newWaitGroup()
		wg.Add(1)
		inTurn(func() { *word++; wg.Done() }, func() { wg.Wait(); *word++ })
	}},
	{"DoneToASleeper", func(s subject, word *int) {
		wg := s.newWaitGroup()
		wg.Add(1)
		var start steps
		asleep, done := parkedIn(&start, func() { wg.Wait(); *word++ })
		inTurn(func() { asleep(); *word++; wg.Done() })
		<-done
	}},
	{"AddOrdersNothing", func(s subject, word *int) {
		wg := s.newWaitGroup()
		wg.Add(1)
		inTurn(func() { *word++; wg.Add(1) }, func() { wg.Add(1); *word++ })
	}},
	{"WaitOrdersNobodyElse", func(s subject, word *int) {
		wg := s.newWaitGroup()
		inTurn(func() { *word++; wg.Wait() }, func() { wg.Wait(); *word++ })
	}},
}

// ownEdgeCases are about what package sync does not have. There the name says what must be reported.
var ownEdgeCases = []struct {
	name string
	race bool
	run  func(word *int)
}{
	{"UnlockThenLockContext", false, func(word *int) {
		var m sync2.Mutex
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() { mustLock(m.LockContext); *word++; m.Unlock() })
	}},
	{"UnlockThenTryLockFor", false, func(word *int) {
		var m sync2.Mutex
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() { m.TryLockFor(time.Minute); *word++; m.Unlock() })
	}},
	{"FailedTryLockForOrdersNothing", true, func(word *int) {
		var m sync2.Mutex
		inTurn(func() { m.Lock(); *word++ }, func() { m.TryLockFor(time.Microsecond); *word++ })
	}},
	{"UnlockToASleeperInLockContext", false, func(word *int) {
		var m sync2.Mutex
		var start steps
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		lock := func(context.Context) error { return m.LockContext(ctx) }
		asleep, done := parkedIn(&start, func() { mustLock(lock); *word++; m.Unlock() })
		inTurn(func() { m.Lock(); *word++; asleep(); m.Unlock() })
		<-done
	}},
	{"RWTryLockForThatGaveUpOrdersNoWriter", true, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.RLock() }, func() { *word++; m.TryLockFor(time.Microsecond) }, func() { m.RUnlock(); m.Lock(); *word++; m.Unlock() })
	}},
	{"RWUnlockThenRLockContext", false, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.Lock(); *word++; m.Unlock() }, func() { mustLock(m.RLockContext); *word++; m.RUnlock() })
	}},
	{"RUnlockThenLockContext", false, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.RLock(); *word++; m.RUnlock() }, func() { mustLock(m.LockContext); *word++; m.Unlock() })
	}},
	{"TryRLockForDoesNotOrderReaders", true, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.RLock(); *word++; m.RUnlock() }, func() { m.TryRLockFor(time.Minute); *word++; m.RUnlock() })
	}},
	{"DowngradeThenRLock", false, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.Lock(); *word++; m.Downgrade() }, func() { m.RLock(); *word++; m.RUnlock() })
	}},
	{"ReadAfterDowngradeThenLock", false, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.Lock(); m.Downgrade(); *word++; m.RUnlock() }, func() { m.Lock(); *word++; m.Unlock() })
	}},
	{"ReadAfterDowngradeOrdersNoReader", true, func(word *int) {
		var m sync2.RWMutex
		inTurn(func() { m.Lock(); m.Downgrade(); *word++; m.RUnlock() }, func() { m.RLock(); *word++; m.RUnlock() })
	}},
	{"DoneThenWaitContext", false, func(word *int) {
		var wg sync2.WaitGroup
		wg.Add(1)
		inTurn(func() { *word++; wg.Done() }, func() { mustLock(wg.WaitContext); *word++ })
	}},
	{"WaitContextThatGaveUpOrdersNothing", true, func(word *int) {
		var wg sync2.WaitGroup
		wg.Add(2)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		inTurn(func() { *word++; wg.Done() }, func() { _ = wg.WaitContext(ctx); *word++ })
	}},
}

// mustLock calls a form that takes a context, with one that never ends.
func mustLock(lock func(context.Context) error) {
	if err := lock(context.Background()); err != nil {
		panic(err)
	}
}

var ownEdgePart = child("RaceOwnEdges", func(subject) {
	for _, c := range ownEdgeCases {
		before := runtime.RaceErrors()
		c.run(new(int))
		if race := runtime.RaceErrors() > before; race != c.race {
			fmt.Printf("%s: race reported: %v, want %v\n", c.name, race, c.race)
		}
	}
})

func TestRaceDetectorSeesTheEdgesOfTheAdditions(t *testing.T) {
	if flavour.wraps {
		t.Skipf("in the %s build the additions poll, which orders more than they promise", flavour.name)
	}
	t.Parallel()
	if r := startChild(t, ours, ownEdgePart, time.Minute, raceOptions); r.exit != 0 || r.stdout != "" {
		t.Error(r)
	}
}

var edgePart = child("RaceEdges", func(s subject) {
	reported := map[string]bool{}
	for _, c := range edgeCases {
		before := runtime.RaceErrors()
		c.run(s, new(int))
		reported[c.name] = runtime.RaceErrors() > before
	}
	if err := json.NewEncoder(os.Stdout).Encode(reported); err != nil {
		panic(err)
	}
})

func TestRaceDetectorSeesTheEdgesOfPackageSyncAndNoOthers(t *testing.T) {
	t.Parallel()
	var reported [2]map[string]bool
	for i, s := range subjects {
		r := startChild(t, s, edgePart, time.Minute, raceOptions)
		if err := json.Unmarshal([]byte(r.stdout), &reported[i]); err != nil || r.exit != 0 {
			t.Fatalf("%v: %v", err, r)
		}
	}
	races := 0
	for _, c := range edgeCases {
		want, got := reported[0][c.name], reported[1][c.name]
		if want != got {
			t.Errorf("%s: race reported with sync2: %v, with package sync: %v", c.name, got, want)
		}
		if want {
			races++
		}
	}
	if races < 8 || races > len(edgeCases)-10 {
		t.Errorf("with package sync %d of %d cases have races: the cases say little", races, len(edgeCases))
	}
}

// Mutexes that share a bucket of the parking table have nothing else in common. One goroutine writes many words and then
// unlocks mutexes that others sleep on, so that it locks and unlocks their buckets. Then another one sleeps on one mutex
// after the other, and so locks their buckets, and writes one word after each. Some of the first mutexes share a bucket
// with some of the second, but each pair of writes is a race. (The detector forgets what it saw when there are more than
// about 250 goroutines, hence so few.)
const bucketEarly, bucketLate = 64, 256

var bucketPart = child("RaceBuckets", func(s subject) {
	var words [bucketLate]int
	var turn steps
	early := func() (ms []locktest.Mutex) {
		for range bucketEarly {
			ms = append(ms, s.newMutex())
		}
		return ms
	}()
	late := func() (ms []locktest.Mutex) {
		for range bucketLate {
			ms = append(ms, s.newMutex())
		}
		return ms
	}()

	var sleepers []*locktest.Sleeper
	writer := locktest.Start(func() {
		turn.await(1)
		for _, m := range early {
			m.Lock()
		}
		turn.next()
		turn.await(3)
		for i := range words {
			words[i] = 1
		}
		for _, m := range early {
			m.Unlock()
		}
		turn.next()
		turn.await(5)
	})
	for _, m := range early {
		sleepers = append(sleepers, locktest.Start(func() { turn.await(2); m.Lock(); m.Unlock() }))
	}
	var locked, written steps
	second := locktest.Start(func() {
		for i, m := range late {
			locked.await(i + 1)
			m.Lock()
			words[i] = 2
			m.Unlock()
			written.next()
		}
	})
	owner := locktest.Start(func() {
		turn.await(4)
		for i, m := range late {
			m.Lock()
			locked.next()
			sleepUnnoticed(second)
			m.Unlock()
			written.await(i + 1)
		}
		turn.next()
	})
	turn.next() // 1
	turn.await(2)
	sleepUnnoticed(sleepers...)
	turn.next() // 3
	for _, g := range append(sleepers, writer, second, owner) {
		<-g.Done()
	}
	fmt.Println(runtime.RaceErrors())
})

// sleepUnnoticed waits, without an edge, until all are asleep in a lock.
func sleepUnnoticed(all ...*locktest.Sleeper) {
	for {
		awake := slices.ContainsFunc(all, func(s *locktest.Sleeper) bool {
			reason, stack := s.State()
			return !locktest.Blocked(reason) || strings.Contains(stack, "await")
		})
		if !awake {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func TestRaceDetectorSeesNoEdgeBetweenMutexesThatShareABucket(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s subject) {
		r := startChild(t, s, bucketPart, time.Minute, raceOptions)
		var races int
		if _, err := fmt.Sscan(r.stdout, &races); err != nil || r.exit != 0 {
			t.Fatalf("%v: %v", err, r)
		}
		if races < bucketLate {
			t.Errorf("%d races reported, want %d", races, bucketLate)
		}
	})
}

// On a machine with several NUMA nodes a mutex asks where it is when it becomes contended. The detector neither takes the
// answer for an edge from whoever read the machine, nor for a race with him.
func TestRaceDetectorSeesNoEdgeFromTheReaderOfTheMachine(t *testing.T) {
	t.Parallel()
	r := startChild(t, ours, bucketPart, time.Minute, raceOptions, "SYNC2=topology=4x2")
	var races int
	if _, err := fmt.Sscan(r.stdout, &races); err != nil || r.exit != 0 || races < bucketLate {
		t.Fatalf("%d races reported, want %d: %v, %v", races, bucketLate, err, r)
	}
	if strings.Contains(r.stderr, "topology.") {
		t.Error(r)
	}
}
