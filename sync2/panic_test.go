package sync2_test

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/sync2"
)

// panicOf returns what f panics with.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func wantPanic(t *testing.T, want any, f func()) {
	t.Helper()
	if got := panicOf(f); got != want {
		t.Errorf("got panic %#v, want %#v", got, want)
	}
}

func TestNegativeWaitGroupCounterPanics(t *testing.T) {
	const text = "sync: negative WaitGroup counter"
	onEach(t, func(t *testing.T, s subject) {
		wantPanic(t, text, s.newWaitGroup().Done)
		wantPanic(t, text, func() { s.newWaitGroup().Add(-3) })
		wg := s.newWaitGroup()
		wg.Add(2)
		wantPanic(t, text, func() { wg.Add(-3) })
		wantPanic(t, nil, func() { s.newWaitGroup().Add(0) })
	})
}

// TestReuseOfWaitGroupBeforeWaitReturnedPanics needs the waiter to see the counter of the next use. With one P the
// goroutine that ends the wait goes on and adds before the waiter runs.
func TestReuseOfWaitGroupBeforeWaitReturnedPanics(t *testing.T) {
	const text = "sync: WaitGroup is reused before previous Wait has returned"
	skipMisuse(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	onEach(t, func(t *testing.T, s subject) {
		for range 50 {
			wg := s.newWaitGroup()
			wg.Add(1)
			var got any
			waiter := locktest.Start(func() { got = panicOf(wg.Wait) })
			if err := waiter.WaitAsleep(time.Minute); err != nil {
				t.Fatal(err)
			}
			wg.Done()
			wg.Add(1)
			if err := waiter.WaitEnded(time.Minute); err != nil {
				t.Fatal(err)
			}
			if got == text {
				return
			}
			if got != nil {
				t.Fatalf("got panic %#v, want %#v", got, text)
			}
			// The waiter ran in between: the thread was preempted there.
		}
		t.Errorf("no panic in 50 attempts, want %q", text)
	})
}

func skipMisuse(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector reports this misuse, as it should")
	}
}

// waitGroupPanics are all that a WaitGroup may panic with.
var waitGroupPanics = map[any]bool{
	"sync: negative WaitGroup counter":                            true,
	"sync: WaitGroup misuse: Add called concurrently with Wait":   true,
	"sync: WaitGroup is reused before previous Wait has returned": true,
}

// TestWaitGroupMisuseSaysSoOrGoesUnnoticed adds from 0 while others wait. What is noticed depends on timing, but nothing
// except the known panics may come of it. On a machine that leaves the process little time it goes on until something is.
func TestWaitGroupMisuseSaysSoOrGoesUnnoticed(t *testing.T) {
	skipMisuse(t)
	onEach(t, func(t *testing.T, s subject) {
		seen := map[any]int{}
		begin, long := time.Now(), testTime(300*time.Millisecond)
		for time.Since(begin) < long || len(seen) == 0 && time.Since(begin) < time.Minute {
			for p := range waitGroupMisuse(s) {
				seen[p]++
			}
		}
		for p, n := range seen {
			if !waitGroupPanics[p] {
				t.Errorf("panic %#v, %d times", p, n)
			}
		}
		if len(seen) == 0 {
			t.Error("nothing was noticed in a minute of attempts")
		}
		t.Logf("seen: %v", seen)
	})
}

// waitGroupMisuse lets goroutines add from 0, be done and wait at the same time, once, and returns what they panicked
// with.
func waitGroupMisuse(s subject) map[any]bool {
	wg := s.newWaitGroup()
	var mu sync.Mutex
	seen := map[any]bool{}
	var all []*locktest.Sleeper
	for range 4 {
		all = append(all, locktest.Start(func() {
			for range 50 {
				p := panicOf(func() {
					wg.Add(1)
					runtime.Gosched()
					wg.Done()
					wg.Wait()
				})
				if p != nil {
					mu.Lock()
					defer mu.Unlock()
					seen[p] = true
					return
				}
			}
		}))
	}
	// A panic may leave a goroutine waiting for a counter that nobody lowers: that is the misuse, and not looked into.
	end := time.After(time.Second)
	for _, g := range all {
		select {
		case <-g.Done():
		case <-end:
			panicOf(func() { wg.Add(-1) })
		}
	}
	return seen
}

func TestCopiedCondPanics(t *testing.T) {
	const text = "sync.Cond is copied"
	methods := map[string]func(c cond){
		"Wait":      func(c cond) { c.Wait() },
		"Signal":    func(c cond) { c.Signal() },
		"Broadcast": func(c cond) { c.Broadcast() },
	}
	for name, method := range methods {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			mu.Lock()
			stdCond, ourCond := sync.NewCond(&mu), sync2.NewCond(&mu)
			for _, c := range []cond{stdCond, ourCond} {
				c.Signal() // first use
				copied := reflect.New(reflect.TypeOf(c).Elem())
				copied.Elem().Set(reflect.ValueOf(c).Elem()) // hidden from vet
				if got := panicOf(func() { method(copied.Interface().(cond)) }); fmt.Sprint(got) != text {
					t.Errorf("%T: got panic %#v, want %q", c, got, text)
				}
				if _, ok := panicOf(func() { method(copied.Interface().(cond)) }).(string); !ok {
					t.Errorf("%T: the panic value is not a string", c)
				}
			}
		})
	}
}

// TestPanicInGoEndsTheProcessBeforeWaitReturns: Done is not called for a function that panics.
func TestPanicInGoEndsTheProcessBeforeWaitReturns(t *testing.T) {
	onEach(t, func(t *testing.T, s subject) {
		r := startChild(t, s, panicInGo, time.Minute)
		if r.exit != 2 || r.stdout != "" {
			t.Errorf("want exit status 2 and nothing printed after Wait: %v", r)
		}
	})
}

var panicInGo = child("PanicInGo", func(s subject) {
	wg := s.newWaitGroup()
	wg.Go(func() { panic("in Go") })
	wg.Wait()
	fmt.Println("Wait returned")
})
