package parking_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

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

// A rogue context calls back from one of its methods.
type rogue struct {
	context.Context
	method string
	f      func()
}

func (r rogue) call(method string) {
	if method == r.method {
		r.f()
	}
}

func (r rogue) Err() error            { r.call("Err"); return nil }
func (r rogue) Done() <-chan struct{} { r.call("Done"); return make(chan struct{}) }
func (r rogue) Value(any) any         { r.call("Value"); return nil }

// The methods of a context run while the goroutine is queued.
func TestContextPanics_NothingIsLeft(t *testing.T) {
	for _, method := range []string{"Err", "Done", "Value"} {
		for name, end := range map[string]func(){"panic": func() { panic("stop") }, "Goexit": runtime.Goexit} {
			for _, first := range []string{"", "woken", "late", "woken and late"} {
				t.Run(method+"/"+name+"/"+first, func(t *testing.T) { contextEnds(t, method, first, end) })
			}
		}
	}
}

// contextEnds parks with a context whose method ends the wait by end, first waking
// the waiter, or waiting until its deadline has passed.
func contextEnds(t *testing.T, method, first string, end func()) {
	var tab parking.Table
	var words [2]uint32
	woken, late := strings.Contains(first, "woken"), strings.Contains(first, "late")
	limit := parking.Limit{Deadline: time.Now().Add(time.Hour)}
	asked := false
	limit.Context = rogue{context.Background(), method, func() {
		asked = true
		if woken {
			if n, _ := tab.Wake(parking.WordOf(&words[0]), 1, parking.AllBits, parking.Private); n != 1 {
				t.Error("not queued while the context was asked")
			}
		}
		if late {
			time.Sleep(time.Until(limit.Deadline) + time.Millisecond)
		}
		end()
	}}
	waits := map[string]func(){
		"Wait": func() { tab.Wait(parking.WordOf(&words[0]), 0, parking.AllBits, parking.Private, limit) },
		"WaitV": func() {
			entries := []parking.WaitEntry{{Word: parking.WordOf(&words[0]), Flags: parking.Private}, {Word: parking.WordOf(&words[1]), Flags: parking.Private}}
			tab.WaitV(entries, limit)
		},
	}
	returns := func(wait func()) bool {
		done := make(chan bool)
		go func() {
			returned := false
			defer func() { recover(); done <- returned }()
			wait()
			returned = true
		}()
		return <-done
	}
	for name, wait := range waits {
		asked = false
		for ahead := time.Millisecond; returns(func() {
			if late {
				limit.Deadline = time.Now().Add(ahead)
			}
			wait()
		}); ahead *= 2 {
			if !late || asked || ahead > time.Minute { // else the deadline had passed before the wait began
				t.Errorf("%s returned", name)
				break
			}
		}
		audit(t, &tab, 0)
	}
	k := parking.Key{Addr: parking.AddrOf(&words[0])}
	wakeAllInOrder(t, &tab, k, sleepers(&tab, k, 3)) // the records are in order
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
