package sync2_test

import (
	"fmt"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// The scheduler counts the waits of one goroutine in eight, by their reason, so it takes many to be sure of the figure.
const (
	metricWaiters = 600
	metricHold    = 20 * time.Millisecond
)

// TestMutexWaitMetricCountsTheWaits: each goroutine waits at least as long as the lock is held, and at most as long as the
// whole thing takes.
func TestMutexWaitMetricCountsTheWaits(t *testing.T) {
	for _, part := range metricParts {
		t.Run(part, func(t *testing.T) {
			onEach(t, func(t *testing.T, s subject) {
				if !flavour.waitReasons && s.path == sync2Path {
					t.Skipf("not promised by the %s build", flavour.name)
				}
				var grown, took time.Duration
				r := startChild(t, s, part, time.Minute)
				if _, err := fmt.Sscanln(r.stdout, &grown, &took); err != nil || r.exit != 0 {
					t.Fatalf("%v: %v", err, r)
				}
				if grown < metricWaiters*metricHold/2 || grown > metricWaiters*took*2 {
					t.Errorf("the metric grew by %v while %d goroutines waited for %v to %v each", grown, metricWaiters, metricHold, took)
				}
			})
		})
	}
}

var metricParts = []string{
	child("Metric:Mutex", func(s subject) {
		m := s.newMutex()
		printMutexWait(m.Lock, m.Unlock, m.Lock, m.Unlock)
	}),
	child("Metric:RWMutexWriters", func(s subject) {
		m := s.newRWMutex()
		printMutexWait(m.RLock, m.RUnlock, m.Lock, m.Unlock)
	}),
	child("Metric:RWMutexReaders", func(s subject) {
		m := s.newRWMutex()
		printMutexWait(m.Lock, m.Unlock, m.RLock, m.RUnlock)
	}),
}

// printMutexWait lets goroutines wait and prints, in ns, how much the metric grew and how long it took.
func printMutexWait(hold, release, lock, unlock func()) {
	before, start := mutexWait(), time.Now()
	hold()
	var all []*locktest.Sleeper
	for range metricWaiters {
		all = append(all, locktest.Start(func() { lock(); unlock() }))
	}
	if err := locktest.WaitAllAsleep(all, 30*time.Second); err != nil {
		panic(err)
	}
	time.Sleep(metricHold)
	release()
	for _, s := range all {
		<-s.Done()
	}
	fmt.Println(int64(mutexWait()-before), int64(time.Since(start)))
}

func mutexWait() time.Duration {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}
