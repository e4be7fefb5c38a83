package sync2_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/internal/numatest"
)

// The block profile charges a wait to the stack that waited, the mutex profile to the stack that unlocked. A child runs
// programs whose waits are known, because holders sleep, and prints what the profiles say about them.

// A contention is one program and what it must show. The functions that wait and release have names of their own, so
// that samples can be told apart.
type contention struct {
	name          string
	waits, waiter string // the method that waits and its caller
	wakes, waker  string // the method that ends the wait and its caller
	run           func(s subject) waits
}

// waits are how long all goroutines waited, together. The waiters measure what the block profile charges: it includes that
// they ran late after they had been woken. The mutex profile charges what passed until the release.
type waits struct{ UntilAwake, UntilReleased time.Duration }

var contentions = []contention{
	{
		"Mutex", "sync.Mutex.Lock", "waitForMutex", "sync.Mutex.Unlock", "releaseMutex",
		func(s subject) waits { return contendMutex(s.newMutex(), 1) },
	},
	{
		"MutexWithManyWaiters", "sync.Mutex.Lock", "waitForMutex", "sync.Mutex.Unlock", "releaseMutex",
		func(s subject) waits { return contendMutex(s.newMutex(), 4) },
	},
	{
		"RWMutexReaders", "sync.RWMutex.RLock", "waitToRead", "sync.RWMutex.Unlock", "releaseFromWriting",
		func(s subject) waits {
			m := s.newRWMutex()
			return contend(3, m.Lock, func() { waitToRead(m) }, func() { releaseFromWriting(m) })
		},
	},
	{
		"RWMutexWriter", "sync.RWMutex.Lock", "waitToWrite", "sync.RWMutex.RUnlock", "releaseFromReading",
		func(s subject) waits {
			m := s.newRWMutex()
			return contend(1, m.RLock, func() { waitToWrite(m) }, func() { releaseFromReading(m) })
		},
	},
	{
		"Cond", "sync.Cond.Wait", "waitForSignal", "sync.Cond.Broadcast", "signalAll",
		func(s subject) waits {
			mu := new(sync.Mutex)
			c := s.newCond(mu)
			return contend(1, func() {}, func() { waitForSignal(mu, c) }, func() { signalAll(c) })
		},
	},
	{
		"WaitGroup", "sync.WaitGroup.Wait", "waitForGroup", "sync.WaitGroup.Done", "finish",
		func(s subject) waits {
			wg := s.newWaitGroup()
			return contend(2, func() { wg.Add(1) }, func() { waitForGroup(wg) }, func() { finish(wg) })
		},
	},
}

func contendMutex(m locktest.Mutex, waiters int) waits {
	return contend(waiters, m.Lock, func() { waitForMutex(m) }, func() { releaseMutex(m) })
}

func waitForMutex(m locktest.Mutex) {
	m.Lock()
	m.Unlock()
}

func waitToRead(m rwMutex) {
	m.RLock()
	m.RUnlock()
}

func waitToWrite(m rwMutex) {
	m.Lock()
	m.Unlock()
}

func waitForSignal(mu *sync.Mutex, c cond) {
	mu.Lock()
	c.Wait()
	mu.Unlock()
}

func waitForGroup(wg waitGroup)     { wg.Wait() }
func signalAll(c cond)              { c.Broadcast() }
func finish(wg waitGroup)           { wg.Done() }
func releaseMutex(m locktest.Mutex) { m.Unlock() }
func releaseFromWriting(m rwMutex)  { m.Unlock() }
func releaseFromReading(m rwMutex)  { m.RUnlock() }

// holds are how long a holder sleeps, round by round.
var holds = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}

// contend starts n goroutines that fall asleep in wait, calls release with each of the holds after they all have, and
// returns for how long they waited for it. It turns the profiles on after the first round, in which a Mutex has asked the
// kernel, for some milliseconds, whether it can have asymmetric fences.
func contend(n int, hold, wait, release func()) (w waits) {
	for round, d := range holds {
		if round == 1 {
			w = waits{}
			runtime.SetBlockProfileRate(1)
			runtime.SetMutexProfileFraction(1)
		}
		hold()
		all, took := make([]*locktest.Sleeper, n), make([]time.Duration, n)
		var began []time.Time
		for i := range all {
			all[i] = locktest.Start(func() {
				since := time.Now()
				wait()
				took[i] = time.Since(since)
			})
			if err := all[i].WaitAsleep(time.Minute); err != nil {
				panic(err)
			}
			began = append(began, time.Now())
		}
		time.Sleep(d)
		for _, since := range began {
			w.UntilReleased += time.Since(since)
		}
		release()
		for i, s := range all {
			<-s.Done()
			w.UntilAwake += took[i]
		}
	}
	return w
}

// profiled is what a child prints.
type profiled struct {
	Waited       waits
	Block, Mutex []profileSample
}

func (p profiled) block() ([]profileSample, time.Duration) { return p.Block, p.Waited.UntilAwake }
func (p profiled) mutex() ([]profileSample, time.Duration) { return p.Mutex, p.Waited.UntilReleased }

type profileSample struct {
	Stack  []string // the innermost function first
	Cycles int64
}

var profileParts = func() (parts []string) {
	for _, c := range contentions {
		parts = append(parts, child("Profile:"+c.name, func(s subject) {
			waited := c.run(s)
			p := profiled{waited, samples(runtime.BlockProfile), samples(runtime.MutexProfile)}
			if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
				panic(err)
			}
		}))
	}
	return parts
}()

func samples(profile func([]runtime.BlockProfileRecord) (int, bool)) (out []profileSample) {
	n, _ := profile(nil)
	records := make([]runtime.BlockProfileRecord, n+50)
	n, ok := profile(records)
	if !ok {
		panic("the profile grew by more than 50 records while it was read")
	}
	for _, r := range records[:n] {
		s := profileSample{Cycles: r.Cycles}
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			s.Stack = append(s.Stack, f.Function)
		}
		if strings.HasPrefix(s.Stack[0], "runtime.") {
			continue // the runtime's own locks are in the mutex profile too
		}
		out = append(out, s)
	}
	return out
}

func profileOf(t *testing.T, s subject, part string) profiled {
	t.Helper()
	r := startChild(t, s, part, time.Minute)
	var p profiled
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || r.exit != 0 {
		t.Fatalf("%v: %v", err, r)
	}
	return p
}

// charged returns the cycles of the samples of which the caller's function is on the stack.
func charged(samples []profileSample, caller string) (cycles int64) {
	for _, s := range samples {
		if strings.Contains(strings.Join(s.Stack, "\n"), "sync2_test."+caller) {
			cycles += s.Cycles
		}
	}
	return cycles
}

func TestBlockProfileShowsWaiterAndWait(t *testing.T) {
	for i, c := range contentions {
		t.Run(c.name, func(t *testing.T) {
			compareProfiles(t, profileParts[i], c.waits, c.waiter, profiled.block)
		})
	}
}

func TestMutexProfileShowsHolderAndWait(t *testing.T) {
	if !flavour.mutexProfile {
		t.Skipf("not promised by the %s build with %s", flavour.name, goVersion)
	}
	for i, c := range contentions {
		if !strings.Contains(c.wakes, "Mutex.") {
			continue // a condition, not contention
		}
		t.Run(c.name, func(t *testing.T) {
			compareProfiles(t, profileParts[i], c.wakes, c.waker, profiled.mutex)
		})
	}
}

// compareProfiles wants the samples of a part that belong to the caller to begin with the method and to weigh as much as
// with package sync, in relation to how long the goroutines waited, give or take 20 %. On a machine that is busy with
// other things it takes several attempts.
func compareProfiles(t *testing.T, part, method, caller string, choose func(profiled) (charged []profileSample, waited time.Duration)) {
	t.Helper()
	if !flavour.profiles {
		t.Skipf("not promised by the %s build", flavour.name)
	}
	var ratio [2]float64
	for attempt := 0; ; attempt++ {
		for i, s := range subjects {
			p := profileOf(t, s, part)
			samples, waited := choose(p)
			wantStacks(t, samples, method, caller)
			ratio[i] = float64(charged(samples, caller)) / float64(waited)
		}
		report := fmt.Sprintf("cycles per ns of waiting: %.3f with sync2, %.3f with sync", ratio[1], ratio[0])
		switch r := ratio[1] / ratio[0]; {
		case r > 0.8 && r < 1.2, numatest.Emulated() && r > 0.5 && r < 2: // in the VM the cycles are the host's
			t.Log(report)
			return
		case attempt == 5 || t.Failed():
			t.Fatal(report)
		}
	}
}

func wantStacks(t *testing.T, samples []profileSample, method, caller string) {
	t.Helper()
	found := false
	for _, s := range samples {
		if strings.Contains(strings.Join(s.Stack, "\n"), "sync2_test."+caller) {
			found = true
			wantMethodAboveCaller(t, topFrames(s.Stack), method, "sync2_test."+caller)
		}
	}
	if !found {
		t.Errorf("no sample of %s; there are %v", caller, samples)
	}
}

// topFrames returns the two innermost frames of a stack, by which samples are told apart. Where sync2 wraps package sync,
// what is wrapped is left out, up to the method that the user called.
func topFrames(stack []string) []string {
	if flavour.wraps {
		for len(stack) > 2 && inPackage(stack[0]) && inPackage(stack[1]) {
			stack = stack[1:]
		}
	}
	return stack[:min(2, len(stack))]
}

func inPackage(function string) bool {
	return strings.HasPrefix(function, syncPath+".") || strings.HasPrefix(function, sync2Path+".")
}
