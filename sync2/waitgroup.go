//go:build !sync2_std

// WaitGroup: one word, counter above, waiters below.
//
//	T1  (c,w) -> (c+d,w)   add  Add, Done
//	T2  (c,w) -> (c,w+1)   CAS  Wait, c > 0, under the bucket lock: queues
//	T3  (0,w) -> (0,0)     CAS  Add that made c 0, under the bucket lock: dequeues all
//	T4  (c,w) -> (c,w-1)   add  WaitContext that gives up, under the bucket lock
//	T5  (c,w) -> (c,0)     add  Add that had made c 0, after the next use has begun, under the bucket lock: sends all back
//
//	I1  Under the bucket lock, w is the number of queued waiters.
//	I2  A waiter queues only while c > 0 (T2 is one CAS), and an Add that makes c
//	    0 sees every w before it: so either the waiter sees 0 or Add sees it.
//	I3  If c is not 0 at T3, everybody that the Add saw has left by T4, perhaps
//	    returned and used the WaitGroup anew: an Add that finds c 0 and w not 0
//	    panics. So who is queued then waits for the new c.

package sync2

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// A WaitGroup is a counting semaphore typically used to wait for a group of
// goroutines or tasks to finish. The zero value has a counter of 0. A WaitGroup
// must not be copied after first use.
//
// In the terminology of the Go memory model, a call to [WaitGroup.Done], and the
// return of a function passed to [WaitGroup.Go], synchronizes before the return
// of any Wait call that it unblocks.
type WaitGroup struct {
	noCopy noCopy
	state  atomicUint64 // counter in the high half, waiters in the low
	sleep  uint32       // its address is what waiters park on; its value is for the race detector's builds
}

const (
	misuse = "sync: WaitGroup misuse: Add called concurrently with Wait"
	reused = "sync: WaitGroup is reused before previous Wait has returned"
)

// Add adds delta, which may be negative, to the counter. If the counter becomes
// zero, all goroutines blocked on Wait are released. If the counter goes
// negative, Add panics.
//
// Calls with a positive delta that occur when the counter is zero must happen
// before a Wait.
func (wg *WaitGroup) Add(delta int) {
	if race.Enabled {
		if delta < 0 {
			raceReleaseMerge(wg)
		}
	}
	state := wg.state.Add(uint64(delta) << 32) // T1
	counter, waiting := int32(state>>32), uint32(state)
	if race.Enabled && delta > 0 && counter == int32(delta) {
		// The first increment must be ordered with Wait. A read, because there can
		// be several increments from 0.
		raceRead(&wg.sleep)
	}
	switch {
	case counter < 0:
		panic("sync: negative WaitGroup counter")
	case waiting != 0 && delta > 0 && counter == int32(delta):
		panic(misuse)
	case counter == 0 && waiting != 0:
		wg.release()
	}
}

// waitAgain tells a waiter that it was taken for one of an earlier use.
const waitAgain parking.UnparkToken = 1

// release wakes everybody after the counter has become 0.
func (wg *WaitGroup) release() {
	table().UnparkAllFor(2, keyOf(&wg.sleep), func(r parking.UnparkResult) parking.UnparkToken {
		// I1 holds here, so only the counter may change.
		if wg.state.CompareAndSwap(uint64(r.Unparked), 0) { // T3
			return 0
		}
		wg.state.Add(-uint64(r.Unparked)) // T5, I3
		if race.Enabled {
			wg.forgoFirst()
		}
		return waitAgain
	})
}

// Done decrements the counter by one.
func (wg *WaitGroup) Done() { wg.Add(-1) }

// Wait blocks until the counter is zero.
func (wg *WaitGroup) Wait() { wg.wait(nil) }

// WaitContext blocks until the counter is zero and returns nil, or until ctx
// ends and returns its error. If both hold already, it returns nil.
func (wg *WaitGroup) WaitContext(ctx context.Context) error {
	if !wg.wait(until(ctx)) {
		return ctx.Err()
	}
	return nil
}

func (wg *WaitGroup) wait(l *limit) bool {
	if wg.state.Load()>>32 == 0 {
		raceAcquire(wg)
		return true
	}
	if l.reached() {
		return false
	}
	since := cputicks()
	opts := parking.Options{Reason: waitReason(), Skip: 2, Untimed: true}
	l.apply(&opts)
	enter := func() bool { return wg.enter(l == nil) }
	giveUp := func(parking.Key, bool) { wg.state.Add(^uint64(0)) } // T4
	r := table().Park(keyOf(&wg.sleep), enter, nil, giveUp, &opts)
	for r.Outcome == parking.Unparked && r.Token == waitAgain {
		r = table().Park(keyOf(&wg.sleep), enter, nil, giveUp, &opts)
	}
	outcome := r.Outcome
	isReused := outcome == parking.Unparked && wg.state.Load() != 0
	switch outcome {
	case parking.TimedOut, parking.Canceled:
		return false
	case parking.Unparked:
		blocked(since, 1)
	}
	raceAcquire(wg)
	if isReused {
		panic(reused)
	}
	return true
}

// enter counts the calling goroutine in, under the bucket lock, unless the
// counter is 0 (T2). forEver says that it will not leave by T4.
func (wg *WaitGroup) enter(forEver bool) bool {
	for {
		s := wg.state.Load()
		if s>>32 == 0 {
			return false
		}
		if wg.state.CompareAndSwap(s, s+1) {
			if race.Enabled && uint32(s) == 0 && forEver && !wg.firstForgone() {
				// Wait must be ordered with the first Add. Only the first waiter
				// writes, or concurrent Waits would race; and not one that may leave,
				// since another would then be the first.
				raceWrite(&wg.sleep)
			}
			return true
		}
	}
}

// forgoFirst runs after T5: of those who were sent back one may have written as the
// first, and whoever queues next would be the first once more. So nobody writes
// any more. The bucket lock is held, here and in firstForgone.
//
//go:norace
func (wg *WaitGroup) forgoFirst() { wg.sleep = 1 }

//go:norace
func (wg *WaitGroup) firstForgone() bool { return wg.sleep != 0 }

// waitReason chooses the reason that blocks durably if the calling goroutine is
// in a synctest bubble. The runtime does not tell, but there time.Now has no
// monotonic reading.
func waitReason() parking.Reason {
	if t := now(); inBubble(t) {
		return parking.ReasonWaitGroupWaitDurable
	}
	return parking.ReasonWaitGroupWait
}

func inBubble(t time.Time) bool { return t == t.Round(0) }

// Go calls f in a new goroutine and adds that task to the WaitGroup. When f
// returns, the task is removed from the WaitGroup. f must not panic: the panic
// ends the process, before any Wait returns because of it.
//
// If the WaitGroup is empty, Go must happen before a Wait.
func (wg *WaitGroup) Go(f func()) {
	wg.Add(1)
	go func() {
		defer func() {
			if x := recover(); x != nil {
				panic(x) // not Done: Wait could return and end the process before the panic does
			}
			wg.Done()
		}()
		f()
	}()
}
