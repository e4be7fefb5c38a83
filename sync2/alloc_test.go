package sync2_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestFastPathsAllocateNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s subject) {
		m, rw, wg := s.newMutex(), s.newRWMutex(), s.newWaitGroup()
		c := s.newCond(new(sync.Mutex))
		c.Signal()
		for name, f := range map[string]func(){
			"Mutex.Lock":       func() { m.Lock(); m.Unlock() },
			"Mutex.TryLock":    func() { m.TryLock(); m.TryLock(); m.Unlock() },
			"RWMutex.Lock":     func() { rw.Lock(); rw.Unlock() },
			"RWMutex.TryLock":  func() { rw.TryLock(); rw.TryLock(); rw.Unlock() },
			"RWMutex.RLock":    func() { rw.RLock(); rw.RLock(); rw.RUnlock(); rw.RUnlock() },
			"RWMutex.TryRLock": func() { rw.TryRLock(); rw.TryLock(); rw.RUnlock() },
			"WaitGroup":        func() { wg.Add(2); wg.Done(); wg.Done(); wg.Wait() },
			"Cond":             func() { c.Signal(); c.Broadcast() },
		} {
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s: %v allocations per run", name, n)
			}
		}
	})
}

// TestWaitingAllocatesNothingInTheSteadyState lets a goroutine fall asleep and be woken many times.
func TestWaitingAllocatesNothingInTheSteadyState(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector sync.Pool forgets what it is given, at random, so that caches built on it do too")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	onEach(t, func(t *testing.T, s subject) {
		if !flavour.allocFree && s.path == sync2Path {
			t.Skipf("not promised by the %s build", flavour.name)
		}
		m, rw, wg := s.newMutex(), s.newRWMutex(), s.newWaitGroup()
		mu := s.newMutex()
		c := s.newCond(mu)
		for name, w := range map[string]struct{ hold, wait, release func() }{
			"Mutex.Lock":     {m.Lock, func() { m.Lock(); m.Unlock() }, m.Unlock},
			"RWMutex.Lock":   {rw.RLock, func() { rw.Lock(); rw.Unlock() }, rw.RUnlock},
			"RWMutex.RLock":  {rw.Lock, func() { rw.RLock(); rw.RUnlock() }, rw.Unlock},
			"WaitGroup.Wait": {func() { wg.Add(1) }, func() { wg.Wait() }, wg.Done},
			"Cond.Wait":      {func() {}, func() { mu.Lock(); c.Wait(); mu.Unlock() }, c.Signal},
		} {
			if n := allocsPerWait(w.hold, w.wait, w.release); n > 0.05 {
				t.Errorf("%s: %v allocations per wait", name, n)
			}
		}
	})
}

// allocsPerWait needs GOMAXPROCS(1): a goroutine that calls Gosched then runs again only after the other has fallen asleep
// or done its part.
func allocsPerWait(hold, wait, release func()) float64 {
	const rounds = 1000
	var turn, done atomic.Int32
	stop := false
	go func() {
		for i := int32(1); ; i++ {
			for turn.Load() != i {
				runtime.Gosched()
			}
			if stop {
				return
			}
			wait()
			done.Store(i)
		}
	}()
	i := int32(0)
	round := func() {
		hold()
		i++
		turn.Store(i)
		for range 3 {
			runtime.Gosched()
		}
		release()
		for done.Load() != i {
			runtime.Gosched()
		}
	}
	for range 100 {
		round()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	stop = true
	turn.Store(i + 1)
	return float64(after.Mallocs-before.Mallocs) / rounds
}
