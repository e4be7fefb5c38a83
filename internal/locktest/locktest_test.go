package locktest_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

func TestStandardMutexPassesEveryCheck(t *testing.T) {
	locktest.TestMutex(t, locktest.Options{Duration: 100 * time.Millisecond}, func() locktest.Mutex { return new(sync.Mutex) })
}

func TestStandardRWMutexPassesEveryCheck(t *testing.T) {
	locktest.TestRWMutex(t, locktest.Options{Duration: 100 * time.Millisecond}, func() locktest.RWMutex { return new(sync.RWMutex) })
}

func TestModelPassesEveryCheck(t *testing.T) {
	locktest.TestRWMutex(t, locktest.Options{Duration: 100 * time.Millisecond}, func() locktest.RWMutex { return locktest.NewModel(locktest.NoFault) })
}

// spinLock stands for the locks that lack Blocking.
type spinLock struct{ held atomic.Bool }

func (l *spinLock) TryLock() bool { return l.held.CompareAndSwap(false, true) }
func (l *spinLock) Unlock()       { l.held.Store(false) }
func (l *spinLock) Lock() {
	for !l.TryLock() {
		time.Sleep(time.Microsecond)
	}
}

func TestSpinLockPassesWhatItPromises(t *testing.T) {
	o := locktest.Options{Lacks: locktest.Blocking}
	locktest.TestMutex(t, o, func() locktest.Mutex { return new(spinLock) })
}

// signs tells for each fault a word of the complaint that gives it away.
var signs = map[locktest.Fault]string{
	locktest.NoExclusion:               "exclusion:",
	locktest.CheckThenAct:              "exclusion:",
	locktest.TryLockLies:               "exclusion:",
	locktest.TryLockWaits:              "lost:",
	locktest.TryLockLeaks:              "free:",
	locktest.LostWake:                  "lost:",
	locktest.DoubleGrant:               "exclusion:",
	locktest.LIFO:                      "order:",
	locktest.Greedy:                    "starved",
	locktest.OwnedByGoroutine:          "lost:",
	locktest.ShortQueue:                "lost:",
	locktest.TimeoutKeepsLock:          "lost:",
	locktest.TimeoutLies:               "timed:",
	locktest.TimeoutIgnored:            "timed:",
	locktest.EarlyTimeout:              "timed:",
	locktest.LeaverForgetsOthers:       "lost:",
	locktest.ReadersIgnoreWriter:       "exclusion:",
	locktest.WriterIgnoresOtherReaders: "exclusion:",
	locktest.ReadersExcludeReaders:     "sharing:",
	locktest.NoWriterPreference:        "preference:",
	locktest.WritersAlwaysFirst:        "phase:",
	locktest.OneReaderPerPhase:         "phase:",
	locktest.DowngradeGap:              "exclusion:",
}

// Several broken locks are judged at a time, on any number of CPUs: most of it is waiting for goroutines that will never
// come back.
func TestHarnessCatchesBrokenLocks(t *testing.T) {
	o := locktest.Options{Seed: locktest.Seed(t), Duration: 100 * time.Millisecond, Patience: 500 * time.Millisecond, Hidden: true}
	verdicts := make(map[locktest.Fault]chan error)
	seats := make(chan struct{}, 4)
	for _, fault := range locktest.Faults() {
		verdict := make(chan error, 1)
		verdicts[fault] = verdict
		go func() {
			seats <- struct{}{}
			verdict <- complaints(t, o, fault, signs[fault])
			<-seats
		}()
	}
	for _, fault := range locktest.Faults() {
		t.Run(fault.String(), func(t *testing.T) {
			err, sign := <-verdicts[fault], signs[fault]
			if sign == "" || err == nil || !strings.Contains(err.Error(), sign) {
				t.Errorf("want a complaint with %q, got %v", sign, err)
			}
		})
	}
}

// complaints runs the checks over locks with the fault until one complains with the sign, and returns all complaints. What
// takes an unlucky moment may need several rounds on a machine that is busy with other things, and where checks do not come
// back in time, more time.
func complaints(t *testing.T, o locktest.Options, fault locktest.Fault, sign string) (all error) {
	newLock := func() *locktest.Model {
		m := locktest.NewModel(fault)
		t.Cleanup(m.Abandon)
		return m
	}
	found := func(err error) bool {
		all = errors.Join(all, err)
		return err != nil && strings.Contains(err.Error(), sign)
	}
	for range 5 {
		for _, c := range locktest.MutexChecks() {
			if found(c.Run(o, func() locktest.Mutex { return newLock() })) {
				return all
			}
		}
		for _, c := range locktest.RWMutexChecks() {
			if found(c.Run(o, func() locktest.RWMutex { return newLock() })) {
				return all
			}
		}
		o.Patience *= 2
	}
	return all
}

func TestSeedIsTakenFromTheEnvironment(t *testing.T) {
	t.Setenv(locktest.SeedEnv, "0x2a")
	if seed := locktest.Seed(t); seed != 42 {
		t.Errorf("Seed with %s=0x2a: got %d, want 42", locktest.SeedEnv, seed)
	}
}

func TestErrorsNameTheCheckAndTheSeed(t *testing.T) {
	m := locktest.NewModel(locktest.NoExclusion)
	o := locktest.Options{Seed: 7, Hidden: true}
	err := locktest.MutexChecks()[0].Run(o, func() locktest.Mutex { return m })
	if err == nil || !strings.Contains(err.Error(), "NewLockIsFree") || !strings.Contains(err.Error(), "HQSYNC_SEED=7") {
		t.Errorf("got %v, want an error that names the check and its seed", err)
	}
}

func TestSleeperSeesItsGoroutineSleepAndEnd(t *testing.T) {
	var mu sync.Mutex
	mu.Lock()
	s := locktest.Start(func() { mu.Lock(); mu.Unlock() })
	if err := s.WaitAsleep(time.Minute); err != nil {
		t.Fatal(err)
	}
	if reason, stack := s.State(); reason != "sync.Mutex.Lock" || !strings.Contains(stack, "TestSleeperSees") {
		t.Errorf("got reason %q and stack\n%s", reason, stack)
	}
	mu.Unlock()
	if err := s.WaitEnded(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitAsleep(time.Second); err == nil {
		t.Error("WaitAsleep of a goroutine that has ended succeeded")
	}
}

func TestParseGoroutinesKeepsReasonAndDropsRemarks(t *testing.T) {
	const dump = "goroutine 1 gp=0x1 m=0 mp=0x2 [running]:\nmain.main()\n\n" +
		"goroutine 7 [sync.WaitGroup.Wait (durable), 5 minutes, synctest bubble 3]:\nmain.f()\n\n" +
		"goroutine 8 [chan receive (nil chan), locked to thread]:\nmain.g()\n"
	want := []string{"running", "sync.WaitGroup.Wait", "chan receive (nil chan)"}
	gs := locktest.ParseGoroutines(dump)
	if len(gs) != len(want) {
		t.Fatalf("got %d goroutines, want %d", len(gs), len(want))
	}
	for i, g := range gs {
		if g.Reason != want[i] {
			t.Errorf("goroutine %d: got reason %q, want %q", g.ID, g.Reason, want[i])
		}
	}
}
