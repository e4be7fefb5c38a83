package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/internal/lookup"
	"github.com/hqsync/hqsync/internal/race"
)

// TestEachFutexCommand_Runs measures something of each table in the shortest form.
func TestEachFutexCommand_Runs(t *testing.T) {
	dir := t.TempDir()
	for command, test := range map[string]struct{ pattern, want string }{
		"parked":        {`waiters=1000/mutexes=1$`, "1000 on 1 mutexes"},
		"hash":          {`slots=8192|design=|HashKernel/g=1$`, "back pointer"},
		"wake":          {`g=8/percall=8`, "8 waiters, 8 per call"},
		"wake-parallel": {`g=8/`, "8 waiters"},
		"requeue":       {`g=8/percall=1$`, "8 waiters, 1 per call"},
		"handoff":       {`g=2$`, "2 goroutines"},
	} {
		if command == "handoff" && race.Enabled {
			t.Log("handoff is left out: the race detector does not know that a lock was handed over by the kernel")
			continue
		}
		status, stdout, stderr := start(t, command, "-samples", "6", "-d", "5ms", "-filter", test.pattern, "-out", dir)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "targets: ") || !strings.Contains(stdout, test.want) {
			t.Errorf("bench %s: status %d, stderr %q\n%s", command, status, stderr, stdout)
		}
		if _, err := os.Stat(filepath.Join(dir, command+".html")); err != nil {
			t.Error(err)
		}
	}
}

// TestHash_JudgesTheRowsWithTargets: the size against a small one, every design that is not shipped, and the kernel.
func TestHash_JudgesTheRowsWithTargets(t *testing.T) {
	want := map[string]result.Target{"HashKernel/g=1": *result.AtLeast(10), "HashKernel/g=2": *result.AtLeast(10), "HashSlots/g=2/slots=8192": *result.AtLeast(1.2)}
	for _, d := range lookup.Designs() {
		if d != lookup.Pair {
			for _, g := range []string{"1", "2"} {
				want["HashDesign/g="+g+"/design="+dashed(d.String())] = *result.AtMost(1)
			}
		}
	}
	for _, spec := range hashTables(2, 1024, 0) {
		for _, c := range spec.cells {
			target := c.rows[0].target
			if target == nil {
				continue
			}
			if *target != want[c.name] {
				t.Errorf("%s: target %v, want %v", c.name, target, want[c.name])
			}
			delete(want, c.name)
		}
	}
	if len(want) != 0 {
		t.Errorf("rows without their target: %v", want)
	}
}

// everyFutex are all that can be measured.
func everyFutex() map[string]futexMaker {
	return map[string]futexMaker{
		"private": futex.Table{Slots: 64}, "immutable": futex.Table{Slots: 64, Immutable: true}, "global": futex.Table{},
		"atomic": futex.Table{Slots: 64, Design: lookup.Atomic},
		"kernel": futex.Kernel{}, "kernel-shared": futex.Kernel{Shared: true}, "kernel-call": futex.Kernel{Blocking: true},
	}
}

// TestFutexes_AgreeWithTheKernel: what is compared does the same.
func TestFutexes_AgreeWithTheKernel(t *testing.T) {
	for name, maker := range everyFutex() {
		t.Run(name, func(t *testing.T) {
			f := mustMake(maker)
			words := make([]uint32, 128)
			if err := f.Refuse(words); err != nil {
				t.Fatal(err)
			}
			if n := f.Wake(&words[0], 1); n != 0 {
				t.Errorf("woke %d where nobody waits", n)
			}
			const waiters = 5
			woken := make(chan bool, waiters)
			for range waiters {
				go func() {
					for !f.Wait(&words[0], 0) {
					}
					woken <- true
				}()
			}
			moved := 0
			for end := time.Now().Add(time.Minute); moved < 3 && time.Now().Before(end); {
				moved += f.Requeue(&words[0], &words[1], 3-moved)
			}
			n := 0
			for end := time.Now().Add(time.Minute); n < waiters && time.Now().Before(end); {
				n += f.Wake(&words[0], waiters) + f.Wake(&words[1], waiters)
			}
			if moved != 3 || n != waiters {
				t.Fatalf("moved %d and woke %d, want 3 and %d", moved, n, waiters)
			}
			for range waiters {
				<-woken
			}
		})
	}
}

// TestRefuse_NoticesAWaitThatSleeps: the hash commands would measure nothing if their waits were not refused.
func TestRefuse_NoticesAWaitThatSleeps(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	locktest.KeepWorldRunning(t)
	for name, maker := range everyFutex() {
		t.Run(name, func(t *testing.T) {
			f := mustMake(maker)
			words := []uint32{0, 1} // the second has the value that is waited for
			done := make(chan error)
			go func() { done <- f.Refuse(words) }()
			if maker == (futex.Kernel{}) || maker == (futex.Kernel{Shared: true}) {
				time.Sleep(10 * time.Millisecond) // its thread sleeps, and Go does not know: its P stops for nobody
			}
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				f.Wake(&words[1], 1)
				select {
				case err := <-done:
					if err == nil {
						t.Error("a wait that was woken counts as refused")
					}
					return
				default:
				}
			}
			t.Fatal("the wait did not end")
		})
	}
}

// TestHandOff_IsALock, and its owner is who has waited the longest.
func TestHandOff_IsALock(t *testing.T) {
	l := futex.NewHandOff()
	const workers, rounds = 8, 2000
	counter := 0
	done := make(chan bool)
	for range workers {
		go func() {
			for range rounds {
				l.Lock()
				counter++
				l.Unlock()
			}
			done <- true
		}()
	}
	for range workers {
		<-done
	}
	if counter != workers*rounds {
		t.Errorf("counted to %d, want %d", counter, workers*rounds)
	}
}

// TestClosedPI_DoesItsSections: nobody is lost when the kernel hands its lock over.
func TestClosedPI_DoesItsSections(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector does not know that a lock was handed over by the kernel")
	}
	tally, err := harness.RunN(futex.ClosedPI(4, 10, 10), 4000, func() {})
	if err != nil || tally.Ops != 4000 {
		t.Errorf("%d sections, %v, want 4000", tally.Ops, err)
	}
}

// TestParked_Measures: every goroutine is parked and woken, on both sides, and each measure has a value.
func TestParked_Measures(t *testing.T) {
	for _, arm := range []string{result.Sync, result.Sync2, result.Again} {
		for _, size := range []parkedSize{{2000, 1}, {2000, 70}, {2000, 2000}} {
			all, err := park(context.Background(), arm, size, wakeAll)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := park(context.Background(), arm, size, wakeAlone)
			if err != nil {
				t.Fatal(err)
			}
			if alone.Values[string(result.WakerCPU)] <= 0 || all.Values[string(result.Bytes)] < 1000 {
				t.Errorf("%s, %+v: %v and %v, want CPU time, and a stack for each goroutine", arm, size, all.Values, alone.Values)
			}
		}
	}
}

// TestParked_JudgesItsSize with the three targets.
func TestParked_JudgesItsSize(t *testing.T) {
	targets := map[result.Measure]result.Target{}
	for _, c := range parkedTables(parkedSizes, 0)[0].cells {
		for _, r := range c.rows {
			if r.target != nil {
				if c.params["waiters"] != 100_000 || c.params["mutexes"] != 10_000 {
					t.Errorf("%s has a target", c.name)
				}
				targets[r.measure] = *r.target
			}
		}
	}
	want := map[result.Measure]result.Target{result.Bytes: *result.AtMost(1), result.WakerCPU: *result.AtMost(0.6), result.TotalCPU: *result.AtMost(0.95)}
	if !maps.Equal(targets, want) {
		t.Errorf("targets %v, want %v", targets, want)
	}
}
