package parking_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// Two goroutines hand a word to and fro. Each wakes the other only if Waiting
// says so: if that could miss a waiter who validated the old value, both would
// sleep. With a resizer the count that it reads moves underneath.
func TestP13_WaitingIsFalse_OnlyIfNobodySleepsOnTheOldValue(t *testing.T) {
	for _, mode := range []string{"mutable", "immutable", "global", "resized"} {
		for _, procs := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("%s/procs=%d", mode, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				var tab parking.Table
				var stop atomic.Bool
				resizer := make(chan bool)
				go func() {
					defer close(resizer)
					switch mode {
					case "immutable":
						tab.SetSlots(16, parking.Immutable)
					case "global":
						tab.SetSlots(0, 0)
					case "resized":
						for i := 0; !stop.Load(); i++ {
							tab.SetSlots(someSizes[i%3], 0)
							runtime.Gosched()
						}
					}
				}()
				rounds := uint32(effort(t, 100_000))
				words := make([]atomic.Uint32, 2) // how often each side has been served
				key := func(i int) parking.Key { return parking.Key{Addr: parking.AddrOf(&words[i])} }
				within(t, patience, func() {
					concurrently(2, func(me int) {
						for n := uint32(1); n <= rounds; n++ {
							other := 1 - me
							words[other].Add(1)
							if tab.Waiting(key(other)) {
								tab.UnparkOne(key(other), nil)
							}
							for words[me].Load() < n {
								tab.Park(key(me), func() bool { return words[me].Load() < n }, nil, nil, &parking.Options{})
							}
						}
					})
				})
				stop.Store(true)
				<-resizer
				audit(t, &tab, 0)
			})
		}
	}
}

func TestWaiting_FollowsTheWaiters(t *testing.T) {
	var tab parking.Table
	if err := tab.SetSlots(4096, 0); err != nil {
		t.Fatal(err)
	}
	k := keys(t, 1)[0]
	for range 3 {
		s := sleep(&tab, k, parking.Options{})
		for _, n := range someSizes {
			if !tab.Waiting(k) {
				t.Fatal("a parked goroutine does not count")
			}
			if err := tab.SetSlots(n, 0); err != nil {
				t.Fatal(err)
			}
		}
		tab.UnparkOne(k, nil)
		s.wait(t)
		if tab.Waiting(k) {
			t.Fatal("nobody is parked")
		}
	}
}

// Waking an address that nobody waits on takes no bucket lock: it goes through
// while somebody holds the bucket, and the count of those who found it locked
// stays. That of whoever parks there does not.
func TestWakeWithoutWaiters_TakesNoLock(t *testing.T) {
	var tab parking.Table
	word := new(uint32)
	k := parking.Key{Addr: parking.AddrOf(word)}
	s := sleep(&tab, k, parking.Options{})
	tab.UnparkOne(k, nil)
	s.wait(t)

	before := tab.Stats().Contended
	woken := 0
	var failed error
	unlock := tab.LockBucket(k) // pins: a wait for the lock would never end
	for range 1000 {
		n, err := tab.Wake(parking.WordOf(word), 1, parking.AllBits, parking.Private)
		woken += tab.UnparkOne(k, nil).Unparked + tab.UnparkAll(k, nil).Unparked + n
		failed = errors.Join(failed, err)
	}
	unlock()
	if woken != 0 || failed != nil {
		t.Errorf("woke %d: %v", woken, failed)
	}
	if after := tab.Stats().Contended; after != before {
		t.Errorf("%d of 3000 wake-ups wanted the lock", after-before)
	}
	if runtime.GOMAXPROCS(0) == 1 {
		return
	}
	end := time.Now().Add(patience)
	for tab.Stats().Contended == before && time.Now().Before(end) {
		locked := make(chan bool, 1) // the sender is pinned and must not block
		go func() {
			unlock := tab.LockBucket(k)
			locked <- true
			for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
			}
			unlock()
		}()
		<-locked
		s = sleep(&tab, k, parking.Options{})
		tab.UnparkOne(k, nil)
		s.wait(t)
	}
	if tab.Stats().Contended == before {
		t.Error("goroutines that parked while the bucket was locked are not in the count")
	}
}
