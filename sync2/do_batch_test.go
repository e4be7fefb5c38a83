//go:build !sync2_std && !sim

package sync2

// Batches outside of the simulator, which has its own programs and only two cells for requests.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hqsync/hqsync/internal/race"
)

// goroutine returns a name of the calling goroutine.
func goroutine() string {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	id, _, _ := bytes.Cut(bytes.TrimPrefix(buf, []byte("goroutine ")), []byte(" "))
	return string(id)
}

// eagerly lets a request wait as long as it may, so that tests can be sure of batches. It puts back what was before.
func eagerly(t *testing.T, batch int) {
	t.Helper()
	tuned(t, batch, time.Second)
}

func tuned(t *testing.T, batch int, spin time.Duration) {
	t.Helper()
	before := CurrentTunables()
	t.Cleanup(func() {
		if err := SetTunables(before); err != nil {
			t.Error(err)
		}
	})
	after := before
	after.Spin, after.Batch = spin, batch
	if err := SetTunables(after); err != nil {
		t.Fatal(err)
	}
}

// doAsking is m.Do that makes a request at once if m is locked.
func (m *Mutex) doAsking(f func()) {
	if !m.TryLock() {
		ran, locked := m.ask(f)
		if ran {
			return
		}
		if !locked {
			m.Lock()
		}
	}
	defer m.endDo()
	f()
}

// inBatch lets the calls, each of which does m.doAsking once, run on goroutines of their own while m is held, until all their
// requests wait; then it leaves m to a batch, and returns when all goroutines have ended. Goroutines that have no CPU in
// time lock m by themselves; inBatch then tries again, and waits for longer.
func inBatch(t *testing.T, m *Mutex, calls ...func()) {
	t.Helper()
	eagerly(t, len(calls))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 + len(calls)))
	wait, longest := 20*time.Millisecond, 500*time.Millisecond // well below a request's patience
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); wait = min(2*wait, longest) {
		var all sync.WaitGroup
		asked := false
		m.Do(func() {
			for _, call := range calls {
				all.Go(call)
			}
			for begin := time.Now(); !asked && time.Since(begin) < wait; {
				asked = asksFor(m).requests() == len(calls)
				runtime.Gosched()
			}
		})
		all.Wait()
		if asked {
			return
		}
	}
	t.Fatal("in a minute not all requests came together")
}

// requests counts those that a batch would find: waiting also has those that are about to be made.
func (s *askSlot) requests() (n int) {
	for i := range s.cells {
		if s.cells[i].Load() != nil {
			n++
		}
	}
	return n
}

// atRest fails the test if a request or the lock has been left behind. A batch unlocks after those whose functions it has
// run may have gone on: the test waits for that.
func atRest(t *testing.T, m *Mutex) {
	t.Helper()
	slot := asksFor(m)
	if n := slot.waiting.Load(); n != 0 {
		t.Errorf("%d requests at rest", n)
	}
	for i := range slot.cells {
		if slot.cells[i].Load() != nil {
			t.Errorf("a request in cell %d at rest", i)
		}
	}
	if !m.TryLockFor(30 * time.Second) {
		t.Error("still locked")
	}
}

func TestDoBatch_RunsOnOneOtherGoroutineUnderTheMutex(t *testing.T) {
	var m Mutex
	const n = 3
	var callers, runners [n]string
	calls := make([]func(), n)
	before, after := make([]int, n), make([]int, n) // plain memory: the race detector shall see the edges
	for i := range calls {
		calls[i] = func() {
			callers[i] = goroutine()
			before[i] = 1
			m.doAsking(func() {
				runners[i] = goroutine()
				if m.TryLock() {
					t.Error("a function runs without the mutex")
				}
				after[i] = before[i] + 1
			})
			if after[i] != 2 {
				t.Errorf("function %d has not run when Do returns", i)
			}
		}
	}
	inBatch(t, &m, calls...)
	for i := range calls {
		if runners[i] == callers[i] || runners[i] != runners[0] {
			t.Errorf("callers %v, runners %v: want one that is none of the callers", callers, runners)
		}
	}
	atRest(t, &m)
}

func TestDoBatch_PanicReachesItsCallerOnly(t *testing.T) {
	var m Mutex
	boom := errors.New("boom")
	var got any
	var innocent atomic.Int32
	fine := func() { m.doAsking(func() { innocent.Add(1) }) }
	inBatch(t, &m, fine, func() {
		defer func() { got = recover() }()
		m.doAsking(func() { panic(boom) })
	}, fine)
	if got != boom {
		t.Errorf("recovered %v, want %v", got, boom)
	}
	if innocent.Load() < 2 {
		t.Errorf("%d functions of others have run, want all", innocent.Load())
	}
	atRest(t, &m)
}

func TestDoBatch_GoexitEndsItsCallerOnly(t *testing.T) {
	var m Mutex
	var ended, wentOn, innocent atomic.Int32
	exit := func() {
		defer ended.Add(1)
		m.doAsking(func() { runtime.Goexit() })
		wentOn.Add(1)
	}
	fine := func() { m.doAsking(func() { innocent.Add(1) }) }
	inBatch(t, &m, exit, fine, exit, fine)
	if ended.Load() == 0 || wentOn.Load() != 0 {
		t.Errorf("%d callers ended, %d went on", ended.Load(), wentOn.Load())
	}
	if innocent.Load() < 2 {
		t.Errorf("%d functions of others have run, want all", innocent.Load())
	}
	atRest(t, &m)
}

// TestDoBatch_OwnersOfLongFunctionsSleep: also those that wait for another's function in the same batch.
func TestDoBatch_OwnersOfLongFunctionsSleep(t *testing.T) {
	var m Mutex
	var ran atomic.Int32
	long := func() {
		m.doAsking(func() {
			time.Sleep(20 * time.Millisecond)
			ran.Add(1)
		})
	}
	inBatch(t, &m, long, long)
	if ran.Load() < 2 {
		t.Errorf("%d functions have run, want all", ran.Load())
	}
	atRest(t, &m)
}

// TestDoBatch_MayWaitForACondition: the function gives the mutex up while it waits, and is still run once.
func TestDoBatch_MayWaitForACondition(t *testing.T) {
	var m Mutex
	c := NewCond(&m)
	ready, waited := false, 0
	wait := func() {
		m.doAsking(func() {
			for !ready {
				c.Wait()
			}
			waited++
		})
	}
	release, released := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		<-release
		m.Lock()
		ready = true
		m.Unlock()
		c.Broadcast()
	}()
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	inBatch(t, &m, wait, wait)
	<-released // other tests change what Broadcast reads
	if waited < 2 {
		t.Errorf("%d functions have run, want all", waited)
	}
	atRest(t, &m)
}

// TestDo_StartsNoBatchInABubble: what belongs to a bubble is of no use outside, nor the other way round.
func TestDo_StartsNoBatchInABubble(t *testing.T) {
	eagerly(t, 1)
	start := func() bool {
		var m Mutex
		m.Lock()
		asksFor(&m).waiting.Add(1)
		defer asksFor(&m).waiting.Add(-1)
		started := m.startBatch()
		if !started {
			m.Unlock()
		}
		m.Lock() // after the batch
		m.Unlock()
		return started
	}
	if !start() {
		t.Error("no batch outside of a bubble")
	}
	synctest.Test(t, func(t *testing.T) {
		if start() {
			t.Error("a batch in a bubble")
		}
	})
}

func TestDo_WithoutBatchesStaysOnItsGoroutine(t *testing.T) {
	eagerly(t, 0)
	var m Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				caller := goroutine()
				m.Do(func() {
					if runner := goroutine(); runner != caller {
						t.Errorf("goroutine %s runs the function of %s", runner, caller)
					}
				})
			}
		})
	}
	all.Wait()
	atRest(t, &m)
}

// TestDo_DoesNotStarveLock: batches are bounded, and between them the mutex is unlocked as by anybody.
func TestDo_DoesNotStarveLock(t *testing.T) {
	tuned(t, 1, defaultSpin)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var m Mutex
	var stop atomic.Bool
	var all sync.WaitGroup
	shared := 0
	for range 8 {
		all.Go(func() {
			for !stop.Load() {
				m.Do(func() { shared++ })
			}
		})
	}
	const locks = 100
	begin := time.Now()
	for range locks {
		m.Lock()
		shared++
		m.Unlock()
		runtime.Gosched()
	}
	took := time.Since(begin)
	stop.Store(true)
	all.Wait()
	t.Logf("%d Locks beside %d sections took %v", locks, shared, took)
	if took > time.Minute {
		t.Errorf("%d Locks took %v", locks, took)
	}
	atRest(t, &m)
}

// TestDo_StormOfEverything: all ways to lock, functions that panic and end their goroutine. It goes on until a function has
// run on another goroutine, for which two threads have to have a CPU at the right time.
func TestDo_StormOfEverything(t *testing.T) {
	tuned(t, 1, 200*time.Microsecond) // a request is often withdrawn
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const mutexes, goroutines = 3, 16
	var m [mutexes]struct {
		Mutex
		sections, counted int
		asked             atomic.Int64
		_                 [64]byte
	}
	each := 3000
	if testing.Short() || race.Enabled {
		each /= 5
	}
	var all sync.WaitGroup
	var elsewhere atomic.Int64
	var work func(left int)
	work = func(left int) {
		rng := rand.New(rand.NewPCG(uint64(left), 1))
		// After Goexit another goroutine does the rest.
		defer func() {
			if left > 0 {
				all.Go(func() { work(left) })
			}
		}()
		for left > 0 {
			left--
			s := &m[rng.IntN(mutexes)]
			s.asked.Add(1)
			section := func() {
				s.sections++
				if s.sections%8 == 0 {
					runtime.Gosched() // others shall find the mutex locked
				}
				s.counted++
			}
			switch op := rng.IntN(20); op {
			case 0:
				s.Lock()
				section()
				s.Unlock()
			case 1:
				if s.TryLock() {
					section()
					s.Unlock()
				} else {
					s.asked.Add(-1)
				}
			case 2:
				ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
				if s.LockContext(ctx) == nil {
					section()
					s.Unlock()
				} else {
					s.asked.Add(-1)
				}
				cancel()
			case 3:
				want := fmt.Sprint(left)
				func() {
					defer func() {
						if got := recover(); got != want {
							t.Errorf("recovered %v, want %v", got, want)
						}
					}()
					s.doAsking(func() { section(); panic(want) })
				}()
			case 4:
				s.doAsking(func() { section(); runtime.Goexit() })
			default:
				if op < 10 {
					caller := goroutine()
					s.doAsking(func() {
						section()
						if goroutine() != caller {
							elsewhere.Add(1)
						}
					})
				} else {
					s.doAsking(section)
				}
			}
		}
	}
	rounds := 0
	for end := time.Now().Add(time.Minute); elsewhere.Load() == 0 && time.Now().Before(end); rounds++ {
		for range goroutines {
			all.Go(func() { work(each) })
		}
		all.Wait()
	}
	for i := range m {
		if got, want := m[i].sections, int(m[i].asked.Load()); got != want || m[i].counted != want {
			t.Errorf("mutex %d: %d sections, want %d", i, got, want)
		}
		atRest(t, &m[i].Mutex)
	}
	if elsewhere.Load() == 0 {
		t.Error("no function ran on another goroutine")
	}
	t.Logf("%d of some %d functions ran on another goroutine", elsewhere.Load(), rounds*goroutines*each/4)
}

// TestDoBatch_AllocatesNothingInTheSteadyState: requests and batches are used again, and so are goroutines.
func TestDoBatch_AllocatesNothingInTheSteadyState(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector sync.Pool forgets what it is given, at random")
	}
	eagerly(t, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var m Mutex
	shared := 0
	f := func() { shared++ }
	storm := func(each int) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range each {
					m.doAsking(f)
				}
			})
		}
		all.Wait()
	}
	storm(20_000)
	const each = 50_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	storm(each)
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / (4 * each); n > 0.01 {
		t.Errorf("%.4f allocations per Do", n)
	} else {
		t.Logf("%.5f allocations per Do", n)
	}
}
