package hq

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// stress counts under l from n goroutines for a while; each takes l at least once, if
// only after the others have ended. The plain counter is the oracle of exclusion: two
// sections at once lose an increment, and -race reports them even if they do not.
func stress(t *testing.T, n int, d time.Duration, l *Lock, section func()) {
	t.Helper()
	var counter int
	var stop atomic.Bool
	var wg sync.WaitGroup
	counts := make([]int, n)
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mine := 0
			for mine == 0 || !stop.Load() {
				l.Lock()
				counter++
				section()
				l.Unlock()
				mine++
			}
			counts[i] = mine
		}()
	}
	time.Sleep(d)
	stop.Store(true)
	lost := time.AfterFunc(time.Minute, func() { panic("hq: somebody waits for a lock that nobody uses any more") })
	defer lost.Stop()
	wg.Wait()
	total := 0
	for _, c := range counts {
		total += c
	}
	if counter != total {
		t.Errorf("%d sections ran, the counter says %d", total, counter)
	}
}

func TestLockExcludes(t *testing.T) {
	d := 300 * time.Millisecond
	if testing.Short() {
		d = 50 * time.Millisecond
	}
	for _, procs := range []int{1, 2, 4, 16} {
		for _, n := range []int{2, 8, 64} {
			t.Run(fmt.Sprintf("procs=%d/goroutines=%d", procs, n), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				l := new(Lock)
				stress(t, n, d, l, func() {})
				checkQuiet(t, l)
			})
		}
	}
}

// Holders that keep the lock longer than a pinned wait may last drive waiters
// into abandoning their nodes and into sleep.
func TestLongSections_WaitersSleepAndWake(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	l := new(Lock)
	stress(t, 32, 500*time.Millisecond, l, func() {
		for end := time.Now().Add(50 * time.Microsecond); time.Now().Before(end); {
		}
	})
	checkQuiet(t, l)
}

// Sleepers of many locks share a few stacks: waking one lock's sleepers must
// not strand another's.
func TestManyLocks_SleepersShareStacks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	locks := make([]Lock, 256)
	counters := make([]int, len(locks))
	var wg sync.WaitGroup
	const rounds = 60
	for g := range 24 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				k := (g*7 + i) % 3 * 64
				locks[k].Lock()
				counters[k]++
				for end := time.Now().Add(40 * time.Microsecond); time.Now().Before(end); {
				}
				locks[k].Unlock()
			}
		}()
	}
	wg.Wait()
	total := 0
	for i := range locks {
		checkQuiet(t, &locks[i])
		total += counters[i]
	}
	if total != 24*rounds {
		t.Errorf("%d of %d sections counted", total, 24*rounds)
	}
}

func TestTryLock(t *testing.T) {
	locktest.KeepWorldRunning(t)
	l := new(Lock)
	if !l.TryLock() {
		t.Fatal("TryLock of a free lock failed")
	}
	got := make(chan bool)
	go func() {
		ok := l.TryLock()
		if ok {
			l.Unlock()
		}
		got <- ok
	}()
	// The holder is pinned: it may not block, so it spins for the answer.
	var ok bool
	for waiting := true; waiting; {
		select {
		case ok = <-got:
			waiting = false
		default:
			if runtime.GOMAXPROCS(0) == 1 {
				waiting = false
			}
		}
	}
	l.Unlock()
	if ok {
		t.Fatal("TryLock of a held lock succeeded")
	}
	checkQuiet(t, l)
}

// The garbage collector stops the world while goroutines spin, queue and sleep.
func TestStopTheWorldDuringContention(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	l := new(Lock)
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		for !stop.Load() {
			runtime.GC()
			runtime.GOMAXPROCS(2 + int(time.Now().UnixNano()/1e6)%4)
		}
		close(done)
	}()
	stress(t, 16, 500*time.Millisecond, l, func() {})
	stop.Store(true)
	<-done
	checkQuiet(t, l)
}

func BenchmarkLock(b *testing.B) {
	b.Run("goroutines=1", func(b *testing.B) {
		l := new(Lock)
		for b.Loop() {
			l.Lock()
			l.Unlock()
		}
	})
	b.Run("goroutines=procs", func(b *testing.B) {
		l := new(Lock)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Lock()
				l.Unlock()
			}
		})
	})
}
