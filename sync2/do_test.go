package sync2_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/sync2"
)

// What Do promises in every build; batches are in do_batch_test.go.

func TestDo_IsASectionOfTheMutex(t *testing.T) {
	var m sync2.Mutex
	var all sync.WaitGroup
	total := 0
	const goroutines, each = 8, 2000
	for i := range goroutines {
		all.Go(func() {
			for j := range each {
				if (i+j)%2 == 0 {
					m.Do(func() { total++ })
				} else {
					m.Lock()
					total++
					m.Unlock()
				}
			}
		})
	}
	all.Wait()
	if total != goroutines*each {
		t.Errorf("%d of %d sections counted", total, goroutines*each)
	}
	// Who ran the last function for another may not have unlocked yet.
	if !m.TryLockFor(30 * time.Second) {
		t.Error("still locked")
	}
}

func TestDo_HoldsTheMutex(t *testing.T) {
	var m sync2.Mutex
	m.Do(func() {
		if m.TryLock() {
			t.Error("the function runs without the mutex")
		}
	})
}

func TestDo_PanicReachesTheCallerAndUnlocks(t *testing.T) {
	var m sync2.Mutex
	want := errors.New("boom")
	func() {
		defer func() {
			if got := recover(); got != want {
				t.Errorf("recovered %v, want %v", got, want)
			}
		}()
		m.Do(func() { panic(want) })
	}()
	func() {
		defer func() {
			if _, ok := recover().(runtime.Error); !ok {
				t.Error("calling nil did not panic with a runtime.Error")
			}
		}()
		m.Do(nil)
	}()
	if !m.TryLock() {
		t.Error("still locked")
	}
}

func TestDo_GoexitEndsTheCallerAndUnlocks(t *testing.T) {
	var m sync2.Mutex
	ended := make(chan bool)
	go func() {
		wentOn := false
		defer func() { ended <- wentOn }()
		m.Do(runtime.Goexit)
		wentOn = true
	}()
	if <-ended {
		t.Error("Do returned after Goexit")
	}
	if !m.TryLock() {
		t.Error("still locked")
	}
}

func TestDo_AllocatesNothingAlone(t *testing.T) {
	var m sync2.Mutex
	n := 0
	f := func() { n++ }
	if got := testing.AllocsPerRun(1000, func() { m.Do(f) }); got != 0 {
		t.Errorf("%v allocations per Do", got)
	}
}

func BenchmarkDo(b *testing.B) {
	n := 0
	f := func() { n++ }
	b.Run("impl=sync", func(b *testing.B) {
		var m sync.Mutex
		for b.Loop() {
			m.Lock()
			f()
			m.Unlock()
		}
	})
	b.Run("impl=sync2", func(b *testing.B) {
		var m sync2.Mutex
		for b.Loop() {
			m.Do(f)
		}
	})
}
