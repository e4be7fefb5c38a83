package sync2_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// In a bubble of testing/synctest, Cond.Wait and WaitGroup.Wait block durably: synctest.Wait returns and the fake clock
// moves while goroutines are in them. Mutex and RWMutex do not: their holder may be outside. A wrong answer makes a bubble
// hang, so each case runs in a child.

var bubbles = []string{
	child("Bubble:CondWaitIsDurable", inBubble(func(t *testing.T, s subject) {
		mu := s.newMutex()
		c := s.newCond(mu)
		var awake atomic.Int32
		for range 3 {
			go func() {
				mu.Lock()
				defer mu.Unlock()
				c.Wait()
				awake.Add(1)
			}()
		}
		synctest.Wait() // returns only if all three block durably
		want(t, "awake before Signal", awake.Load(), 0)
		c.Signal()
		synctest.Wait()
		want(t, "awake after Signal", awake.Load(), 1)
		mu.Lock()
		c.Broadcast() // with L held: the waiters now wait for the mutex
		mu.Unlock()
		synctest.Wait()
		want(t, "awake after Broadcast", awake.Load(), 3)
	})),
	child("Bubble:WaitGroupWaitIsDurable", inBubble(func(t *testing.T, s subject) {
		wg := s.newWaitGroup()
		wg.Add(1)
		returned := false
		go func() { wg.Wait(); returned = true }()
		synctest.Wait()
		want(t, "Wait returned before Done", returned, false)
		wg.Done()
		synctest.Wait()
		want(t, "Wait returned after Done", returned, true)
	})),
	child("Bubble:ClockMovesWhileAllWaitDurably", inBubble(func(t *testing.T, s subject) {
		wg := s.newWaitGroup()
		start := time.Now()
		wg.Go(func() { time.Sleep(time.Hour) })
		wg.Wait()
		want(t, "fake time spent in WaitGroup.Wait", time.Since(start), time.Hour)

		mu := s.newMutex()
		c := s.newCond(mu)
		mu.Lock()
		time.AfterFunc(time.Hour, c.Signal)
		c.Wait()
		mu.Unlock()
		want(t, "fake time spent in Cond.Wait", time.Since(start), 2*time.Hour)
	})),
	child("Bubble:MutexLockIsNotDurable", inBubbleWithHolder(func(s subject) (lock, unlock, hold, release func()) {
		m := s.newMutex()
		return m.Lock, m.Unlock, m.Lock, m.Unlock
	})),
	child("Bubble:RWMutexLockIsNotDurable", inBubbleWithHolder(func(s subject) (lock, unlock, hold, release func()) {
		m := s.newRWMutex()
		return m.Lock, m.Unlock, m.RLock, m.RUnlock
	})),
	child("Bubble:RWMutexRLockIsNotDurable", inBubbleWithHolder(func(s subject) (lock, unlock, hold, release func()) {
		m := s.newRWMutex()
		return m.RLock, m.RUnlock, m.Lock, m.Unlock
	})),
	child("Bubble:BroadcastWhileTheMutexIsHeldOutsideIsNotDurable", func(s subject) {
		mu := s.newMutex()
		c := s.newCond(mu)
		outside := newHolder(mu.Lock, mu.Unlock)
		runTest(func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var awake atomic.Int32
				for range 3 {
					go func() {
						mu.Lock()
						defer mu.Unlock()
						c.Wait()
						awake.Add(1)
					}()
				}
				synctest.Wait()
				outside.hold()
				c.Broadcast()
				outside.releaseSoon()
				synctest.Wait() // the waiters wait for a mutex that somebody outside will unlock
				want(t, "awake after Broadcast", awake.Load(), 3)
			})
		})
	}),
	child("Bubble:WaitersOfInsideAndOutsideTakeTurns", func(s subject) {
		// What a wait leaves behind, such as a cached record or channel, must serve the other side of the bubble's wall.
		m := s.newMutex()
		runTest(func(t *testing.T) {
			for range 20 {
				sleepOn(m)
				synctest.Test(t, func(t *testing.T) { sleepInBubble(t, s) })
			}
			sleepOn(m)
		})
	}),
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

const bubbleDone = "the bubble has ended well"

// runTest runs f as a test of the child process and ends the process.
func runTest(f func(t *testing.T)) {
	all := func(pattern, name string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "InBubble", F: func(t *testing.T) {
		f(t)
		if !t.Failed() {
			fmt.Println(bubbleDone)
		}
	}}}, nil, nil)
}

func inBubble(f func(t *testing.T, s subject)) func(s subject) {
	return func(s subject) {
		runTest(func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, s) }) })
	}
}

// A holder is a goroutine outside of the bubble that holds and releases on request.
type holder struct{ requests, replies chan struct{} }

func newHolder(hold, release func()) holder {
	h := holder{make(chan struct{}), make(chan struct{})}
	go func() {
		<-h.requests
		hold()
		h.replies <- struct{}{}
		<-h.requests
		time.Sleep(50 * time.Millisecond) // real time: long enough for a wrong synctest.Wait to return
		release()
	}()
	return h
}

func (h holder) hold()        { h.requests <- struct{}{}; <-h.replies }
func (h holder) releaseSoon() { h.requests <- struct{}{} }

// inBubbleWithHolder locks inside what is held outside: synctest.Wait must not return before that has been released.
func inBubbleWithHolder(prepare func(s subject) (lock, unlock, hold, release func())) func(s subject) {
	return func(s subject) {
		lock, unlock, hold, release := prepare(s)
		outside := newHolder(hold, release)
		runTest(func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outside.hold()
				var got atomic.Bool
				go func() { lock(); got.Store(true); unlock() }()
				outside.releaseSoon()
				synctest.Wait()
				want(t, "the goroutine inside got the lock by the time synctest.Wait returned", got.Load(), true)
			})
		})
	}
}

// sleepOn makes a goroutine outside of any bubble wait for m.
func sleepOn(m locktest.Mutex) {
	m.Lock()
	s := locktest.Start(func() { m.Lock(); m.Unlock() })
	if err := s.WaitAsleep(30 * time.Second); err != nil {
		panic(err)
	}
	m.Unlock()
	<-s.Done()
}

// sleepInBubble makes goroutines of a bubble wait in every way that ends without help from outside.
func sleepInBubble(t *testing.T, s subject) {
	m, mu := s.newMutex(), new(sync.Mutex)
	c, wg := s.newCond(mu), s.newWaitGroup()
	m.Lock()
	for range 3 {
		wg.Go(func() { m.Lock(); m.Unlock() })
		wg.Go(func() { mu.Lock(); c.Wait(); mu.Unlock() })
	}
	time.AfterFunc(time.Minute, c.Broadcast)
	for range 100 { // nothing durable to wait for: let them get to the mutex
		for range 10 {
			yieldForReal()
		}
	}
	m.Unlock()
	wg.Wait()
}

// yieldForReal lets others run without touching the fake clock.
func yieldForReal() {
	done := make(chan struct{})
	go close(done)
	<-done
}

func TestSynctestBubble(t *testing.T) {
	for _, part := range bubbles {
		t.Run(strings.TrimPrefix(part, "Bubble:"), func(t *testing.T) {
			onEach(t, func(t *testing.T, s subject) {
				t.Parallel()
				if r := startChild(t, s, part, time.Minute); r.exit != 0 || !strings.Contains(r.stdout, bubbleDone) {
					t.Error(r)
				}
			})
		})
	}
}
