package parking_test

import (
	"runtime"
	"testing"

	"github.com/hqsync/hqsync/parking"
)

func TestBeforeSleepPanics_NothingIsLeft(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	for _, woken := range []bool{false, true} {
		func() {
			defer func() {
				if x := recover(); x != "stop" {
					t.Errorf("recovered %v", x)
				}
			}()
			tab.Park(k, nil, func() {
				if woken && tab.UnparkOne(k, nil).Unparked != 1 {
					t.Error("not queued while beforeSleep ran")
				}
				panic("stop")
			}, func(parking.Key, bool) { t.Error("timedOut ran") }, &parking.Options{})
			t.Error("Park returned")
		}()
		audit(t, &tab, 0)
		if tab.Waiting(k) {
			t.Error("somebody is said to wait")
		}
	}
	wakeAllInOrder(t, &tab, k, sleepers(&tab, k, 3)) // the records are in order
}

func TestBeforeSleepEndsTheGoroutine_NothingIsLeft(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	done := make(chan bool)
	go func() {
		defer close(done)
		tab.Park(k, nil, runtime.Goexit, nil, &parking.Options{})
		t.Error("Park returned")
	}()
	<-done
	audit(t, &tab, 0)
}

// A goroutine that is unwinding may park in its deferred functions.
func TestPark_InADeferredFunctionOfAPanic(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	for _, end := range []func(){runtime.Goexit, func() { panic("stop") }} {
		done := make(chan parking.Result)
		go func() {
			var r parking.Result
			defer func() { recover(); done <- r }()
			defer func() { r = tab.Park(k, nil, nil, nil, &parking.Options{}) }()
			end()
		}()
		eventually(t, "it parks", func() bool { return tab.Queued(k) == 1 })
		tab.UnparkOne(k, nil)
		if r := <-done; r.Outcome != parking.Unparked {
			t.Errorf("%+v", r)
		}
	}
}
