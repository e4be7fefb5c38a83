//go:build sim

package sim_test

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// outcomes explores a program wholly and returns its outcomes.
func outcomes(t *testing.T, p sim.Program, o sim.Options) []string {
	t.Helper()
	if o.Strategy == nil {
		o.Strategy = sim.Exhaustive(sim.Unbounded)
	}
	r := sim.Run(t, p, o)
	if !r.Exhausted {
		t.Fatalf("%s", r)
	}
	return r.OutcomeSet()
}

func wantOutcomes(t *testing.T, p sim.Program, o sim.Options, want ...string) {
	t.Helper()
	if got := outcomes(t, p, o); !reflect.DeepEqual(got, want) {
		t.Errorf("outcomes %q, want %q", got, want)
	}
}

// wantFailure explores a program and asks for a failure of a kind whose message contains a text.
func wantFailure(t *testing.T, p sim.Program, o sim.Options, k sim.Kind, text string) *sim.Failure {
	t.Helper()
	r := sim.Explore(p, o)
	if r.Failure == nil || r.Failure.Kind != k || !strings.Contains(r.Failure.Message, text) || !r.Failure.Reproduced {
		t.Fatalf("%s\nwant %s with %q, reproduced", r, k, text)
	}
	return r.Failure
}

func threads(f ...func()) sim.Program { return sim.Program{Threads: f} }

func TestDeadlock_IsReportedWithWhoWaitsForWhat(t *testing.T) {
	var a, b *sim.Mutex
	p := threads(
		func() { a.Lock(); b.Lock(); sim.Step("inside"); b.Unlock(); a.Unlock() },
		func() { b.Lock(); a.Lock(); sim.Step("inside"); a.Unlock(); b.Unlock() },
	)
	p.Setup = func() {
		a, b = new(sim.Mutex), new(sim.Mutex)
		sim.Name(a, "a")
		sim.Name(b, "b")
	}
	f := wantFailure(t, p, sim.Options{}, sim.KindDeadlock, "T0 waits since step 1 at Lock of b")
	if f.Preemptions != 1 || f.Steps != 2 {
		t.Errorf("%d preemptions and %d steps, want 1 and 2:\n%s", f.Preemptions, f.Steps, f.Detail())
	}
}

func TestLivelock_IsReported(t *testing.T) {
	var x *sim.Uint32
	p := threads(func() {
		for x.Load() == 0 {
			sim.Pause()
		}
	})
	p.Setup = func() { x = new(sim.Uint32) }
	wantFailure(t, p, sim.Options{}, sim.KindLivelock, "every thread that can run spins")

	yields := threads(func() {
		for x.Load() == 0 {
			sim.Yield()
		}
	})
	yields.Setup = p.Setup
	wantFailure(t, yields, sim.Options{}, sim.KindLivelock, "every thread that can run spins")

	forever := threads(func() {
		for {
			x.Add(1)
		}
	})
	forever.Setup = p.Setup
	wantFailure(t, forever, sim.Options{MaxSteps: 100}, sim.KindLivelock, "not finished after 100 steps")
}

func TestPause_BoundedSpinGivesUpOnlyWhenNobodyElseCanRun(t *testing.T) {
	var (
		x   *sim.Uint32
		got string
	)
	spin := func() {
		got = "gave up"
		for range 3 {
			if x.Load() != 0 {
				got = "seen"
				return
			}
			sim.Pause()
		}
	}
	p := threads(spin, func() { x.Store(1) })
	p.Setup = func() { x = new(sim.Uint32) }
	p.Outcome = func() string { return got }
	wantOutcomes(t, p, sim.Options{}, "seen")

	p.Threads = p.Threads[:1]
	wantOutcomes(t, p, sim.Options{}, "gave up")
}

func TestPause_DeadlineMayPassWhileOthersCouldRun(t *testing.T) {
	var (
		x   *sim.Uint32
		got string
	)
	p := threads(
		func() {
			got = "timed out"
			for end := sim.Nanotime() + 50_000; sim.Nanotime() < end; sim.Pause() {
				if x.Load() != 0 {
					got = "seen"
					return
				}
			}
		},
		func() { x.Store(1) })
	p.Setup = func() { x = new(sim.Uint32) }
	p.Outcome = func() string { return got }
	wantOutcomes(t, p, sim.Options{}, "seen", "timed out")
}

func TestPark_TakesExactlyOneUnparkPerWait(t *testing.T) {
	var p *sim.Parker
	wait := func() { p.Prepare(); p.Park("test") }
	prog := threads(wait, func() { p.Unpark() })
	prog.Setup = func() { p = new(sim.Parker) }
	wantFailure(t, prog, sim.Options{}, sim.KindMisuse, "T1: Unpark of a Parker that does not wait") // before Prepare

	prog.Setup = func() { p = new(sim.Parker); p.Prepare() }
	prog.Threads[0] = func() { p.Park("test") }
	wantFailure(t, prog, sim.Options{}, sim.KindMisuse, "without Prepare") // what Setup does to a Parker is outside the run

	var queued *sim.Uint32
	prog.Setup = func() { p, queued = new(sim.Parker), new(sim.Uint32) }
	prog.Threads[0] = func() { p.Prepare(); queued.Store(1); p.Park("test") }
	prog.Threads[1] = func() { sim.WaitWhileEqual32(queued, 0); p.Unpark() }
	outcomes(t, prog, sim.Options{})
	prog.Threads[0] = func() { p.Prepare(); queued.Store(1); p.Park("test"); p.Prepare(); p.Park("again") }
	wantFailure(t, prog, sim.Options{}, sim.KindDeadlock, "T0 is parked (again)")
	prog.Threads[1] = func() { sim.WaitWhileEqual32(queued, 0); p.Unpark(); p.Unpark() }
	wantFailure(t, prog, sim.Options{}, sim.KindMisuse, "T1: Unpark of a Parker that does not wait")
}

// TestPark_KickRacesUnpark is a wait with a time-out by the rules of Parker, in and outside of a run.
func TestPark_KickRacesUnpark(t *testing.T) {
	var (
		p      *sim.Parker
		mu     *sim.Mutex
		queued bool
		ticket uint32
		how    string
	)
	dequeue := func() bool {
		mu.Lock()
		defer mu.Unlock()
		was := queued
		queued = false
		return was
	}
	prog := threads(
		func() {
			ticket = p.Prepare()
			mu.Lock()
			queued = true
			mu.Unlock()
			tm := sim.AfterFunc(time.Microsecond, func() { p.Kick(ticket) })
			how = "woken"
			for p.Park("test") == sim.Kicked {
				if dequeue() {
					p.Leave()
					how = "timed out"
					break
				}
				p.Rearm()
			}
			tm.Stop()
			old := ticket
			if ticket = p.Prepare(); ticket == old {
				sim.Failf("ticket %d twice", old)
			}
			p.Leave()
		},
		func() {
			if dequeue() {
				p.Unpark()
			}
		})
	prog.Setup = func() { p, mu, queued, how = new(sim.Parker), new(sim.Mutex), false, "" }
	prog.Outcome = func() string { return how }
	wantOutcomes(t, prog, sim.Options{}, "timed out", "woken")

	prog.Setup()
	prog.Threads[0]() // for real: nobody unparks
	if how != "timed out" {
		t.Errorf("outside: %s", how)
	}
}

// goParker is the state machine of internal/rt's Parker, as far as Park and Unpark go.
type goParker struct {
	state sim.Uint32 // 0 queued, 1 parked, 2 signalled
	g     uintptr
}

func (p *goParker) park() {
	for p.state.Load() != 2 {
		sim.Gopark(func(g uintptr) bool {
			p.g = g
			return sim.Mutant("commit stores") && p.state.Swap(1) != 3 || p.state.CompareAndSwap(0, 1)
		}, "test")
	}
}

func (p *goParker) unpark() {
	if p.state.Swap(2) == 1 {
		sim.Goready(p.g)
	}
}

func TestGopark_CommitRacesGoready(t *testing.T) {
	var p *goParker
	prog := threads(func() { p.park() }, func() { p.unpark() })
	prog.Setup = func() { p = new(goParker) }
	for _, r := range []sim.ReadyPolicy{sim.AnyP, sim.RunNext} {
		outcomes(t, prog, sim.Options{Ready: r})
	}
	wantFailure(t, prog, sim.Options{Mutant: "commit stores"}, sim.KindDeadlock, "T0 is parked (test)")
	prog.Threads = []func(){func() {}, func() { sim.Goready(1) }}
	wantFailure(t, prog, sim.Options{}, sim.KindMisuse, "Goready of T0, which is not parked")
}

func TestSemaphore_InARun(t *testing.T) {
	var (
		s   *sim.Semaphore
		got string
	)
	p := threads(func() { got = fmt.Sprint(s.AcquireFor(time.Second)) }, func() { s.ReleaseOne(); s.ReleaseOne() })
	p.Setup = func() { s = new(sim.Semaphore) }
	p.Outcome = func() string { return got }
	wantOutcomes(t, p, sim.Options{}, "false", "true")
	p.Threads[0] = func() { s.Acquire(); s.Acquire() }
	p.Outcome = nil
	p.Threads[1] = func() { s.Release(); s.Release() }
	outcomes(t, p, sim.Options{})
	p.Threads[1] = func() { s.ReleaseOne(); s.ReleaseOne() }
	wantFailure(t, p, sim.Options{}, sim.KindDeadlock, "T0 waits")
}

// TestReadyPolicy_RunNextKeepsTheWakerFirst: what the waker does before it blocks comes before what the woken one does.
func TestReadyPolicy_RunNextKeepsTheWakerFirst(t *testing.T) {
	var (
		p     *sim.Parker
		order []string
	)
	say := func(s string) { sim.Step(s); order = append(order, s) }
	var queued *sim.Uint32
	prog := threads(
		func() { p.Prepare(); queued.Store(1); p.Park("test"); say("woken") },
		func() {
			sim.WaitWhileEqual32(queued, 0)
			sim.Yield()
			p.Unpark()
			say("a")
			sim.Yield()
			say("b")
		})
	prog.Setup = func() { p, queued, order = new(sim.Parker), new(sim.Uint32), order[:0] }
	prog.Outcome = func() string { return strings.Join(order, " ") }
	wantOutcomes(t, prog, sim.Options{Ready: sim.RunNext, Strategy: sim.Exhaustive(0)}, "a woken b")
	wantOutcomes(t, prog, sim.Options{Ready: sim.AnyP, Strategy: sim.Exhaustive(1)}, "a woken b", "woken a b")
}

func TestPin_Rules(t *testing.T) {
	var p *sim.Parker
	setup := func() { p = new(sim.Parker) }
	for text, f := range map[string]func(){
		"Park while pinned":             func() { p.Prepare(); sim.Pin(); p.Park("test") },
		"Sleep while pinned":            func() { sim.Pin(); sim.Sleep(1) },
		"unpins without being pinned":   func() { sim.Pin(); sim.Unpin(); sim.Unpin() },
		"ended while pinned":            func() { sim.Pin() },
		"the look needs to be pinned":   func() { sim.MustPinned("the look") },
		"the wait while pinned":         func() { sim.Pin(); sim.MustNotPinned("the wait") },
		"would block inside Atomically": func() { p.Prepare(); sim.Atomically(func() { p.Park("test") }) },
	} {
		wantFailure(t, sim.Program{Setup: setup, Threads: []func(){f}}, sim.Options{}, sim.KindMisuse, text)
	}
}

// TestPin_OneProcMeansNoPreemption: with one P a pinned thread cannot be interrupted.
func TestPin_OneProcMeansNoPreemption(t *testing.T) {
	var (
		x     *sim.Uint32
		plain int
	)
	add := func() {
		sim.Pin()
		v := x.Load()
		x.Store(v + 1)
		sim.Unpin()
	}
	p := threads(add, add)
	p.Setup = func() { x, plain = new(sim.Uint32), 0 }
	p.Outcome = func() string { return fmt.Sprint(x.Load()) }
	wantOutcomes(t, p, sim.Options{Procs: 1}, "2")
	wantOutcomes(t, p, sim.Options{Procs: 2}, "1", "2")
	_ = plain
}

func TestPin_Migrates(t *testing.T) {
	var seen [2]string
	visit := func(i int) func() {
		return func() {
			a := sim.Pin()
			sim.Unpin()
			b := sim.Pin()
			sim.Unpin()
			seen[i] = fmt.Sprint(a, b)
		}
	}
	p := threads(visit(0), visit(1))
	p.Outcome = func() string { return seen[0] }
	wantOutcomes(t, p, sim.Options{}, "0 0")
	wantOutcomes(t, p, sim.Options{Migrate: true}, "0 0", "0 1", "1 0", "1 1")
	wantOutcomes(t, p, sim.Options{Migrate: true, Procs: 3, Strategy: sim.Exhaustive(1)}, "0 0", "0 1", "0 2", "1 1", "2 2")
}

// TestPin_LeavingAPDrainsItsBuffer: who takes over a P sees what was stored there before.
func TestPin_LeavingAPDrainsItsBuffer(t *testing.T) {
	var (
		perP *[2]sim.Uint64
		sum  uint64
	)
	count := func() {
		for range 2 {
			p := sim.Pin()
			sim.StorePlain64(&perP[p], sim.LoadPlain64(&perP[p])+1)
			sim.Unpin()
		}
	}
	p := threads(count, count)
	p.Setup = func() { perP = new([2]sim.Uint64) }
	p.Final = func() error {
		if sum = perP[0].Load() + perP[1].Load(); sum != 4 {
			return fmt.Errorf("%d counted, want 4", sum)
		}
		return nil
	}
	outcomes(t, p, sim.Options{Migrate: true, Memory: sim.TSO, Strategy: sim.Exhaustive(3)})
}

func TestTopology_ComesFromTheOptions(t *testing.T) {
	p := threads(func() {
		sim.Assert(sim.Procs() == 2 && sim.Domain(1) == 7 && sim.Node(1) == 3 && sim.Domain(5) == 0, "topology")
	}, func() {
		cpu := sim.CPU()
		sim.Assert(sim.Node(cpu) == 3, "node of the second thread")
	})
	outcomes(t, p, sim.Options{Domains: []int{0, 7}, Nodes: []int{0, 3}})
}

func TestTimer_StopTellsWhetherItFired(t *testing.T) {
	var fired *sim.Uint32
	p := threads(func() {
		start := sim.Nanotime()
		tm := sim.AfterFunc(time.Second, func() { fired.Store(1) })
		late := sim.Nanotime()-start >= int64(time.Second)
		if tm.Stop() {
			sim.Assert(!late, "the clock had moved")
			sim.Assert(fired.Load() == 0, "stopped, but fired")
			fired.Store(2)
		}
	})
	p.Setup = func() { fired = new(sim.Uint32) }
	p.Outcome = func() string { return fmt.Sprint(fired.Load()) }
	wantOutcomes(t, p, sim.Options{}, "1", "2")
	wantOutcomes(t, p, sim.Options{Timers: sim.LastTime}, "2")
}

func TestSleep_LetsOthersRun(t *testing.T) {
	var order []string
	p := threads(
		func() { sim.Sleep(time.Second); order = append(order, "slept") },
		func() { sim.Step("other"); order = append(order, "other") })
	p.Setup = func() { order = order[:0] }
	p.Outcome = func() string { return strings.Join(order, " ") }
	wantOutcomes(t, p, sim.Options{}, "other slept", "slept other")
	wantOutcomes(t, p, sim.Options{Timers: sim.LastTime}, "other slept")
}

type testKey struct{}

func TestContext_CancelRacesTheEnd(t *testing.T) {
	var (
		c    *sim.Context
		p    *sim.Semaphore
		done *sim.Uint32
		how  string
	)
	prog := threads(
		func() {
			stop := sim.AfterCancel(context.WithValue(c, testKey{}, "v"), func() {
				if done.CompareAndSwap(0, 1) {
					p.Release()
				}
			})
			p.Acquire()
			how = fmt.Sprint(done.Load(), stop(), c.Err())
		},
		func() { c.Cancel() },
		func() {
			if done.CompareAndSwap(0, 2) {
				p.Release()
			}
		})
	prog.Setup = func() { c, p, done = sim.NewContext(), new(sim.Semaphore), new(sim.Uint32) }
	prog.Outcome = func() string { return how }
	wantOutcomes(t, prog, sim.Options{},
		"1 false context canceled", "2 false context canceled", "2 true <nil>", "2 true context canceled")
}

func TestChoose_TriesEveryNumber(t *testing.T) {
	var k int
	p := threads(func() { k = sim.Choose(3)*10 + sim.Choose(2) })
	p.Outcome = func() string { return fmt.Sprint(k) }
	wantOutcomes(t, p, sim.Options{Strategy: sim.Exhaustive(0)}, "0", "1", "10", "11", "20", "21")
}

func TestRand_IsTheSameInEverySchedule(t *testing.T) {
	var a, b uint64
	p := threads(func() { a = sim.Rand(); sim.Step("a") }, func() { sim.Step("b"); b = sim.Rand() })
	p.Outcome = func() string { return fmt.Sprint(a, b) }
	one := outcomes(t, p, sim.Options{})
	if len(one) != 1 || a == b {
		t.Errorf("%q", one)
	}
	if two := outcomes(t, p, sim.Options{Seed: 1}); reflect.DeepEqual(one, two) {
		t.Error("the seed changes nothing")
	}
}

func TestID_DoesNotDependOnAddresses(t *testing.T) {
	var a, b *[100]uint64
	at := func(p *[100]uint64) uintptr { return reflect.ValueOf(p).Pointer() }
	p := threads(func() {
		sim.Assert(sim.ID(at(b)) == 1 && sim.ID(at(a)) == 2 && sim.ID(at(a)+8) == 3, "numbers")
	})
	p.Setup = func() { a, b = new([100]uint64), new([100]uint64); sim.ID(at(b)) }
	outcomes(t, p, sim.Options{})
	if sim.ID(at(a)) != uint64(at(a)) {
		t.Error("outside a run an address is its own number")
	}
}

// What a fence waited for in one schedule is nothing to it in the next. If it were, there would be schedules that are not
// explored, and how many would depend on their order, and so on that of the threads.
func TestHeavyFence_DoesNotWaitForThreadsThatStartLater(t *testing.T) {
	var x, y *sim.Uint32
	fence := func() { y.Load(); sim.HeavyFence(); x.Load() }
	store := func() { sim.StorePlain32(y, 1) }
	start := func() { sim.Go(func() { sim.StorePlain32(x, 1); y.Load() }) }
	var counts []int
	for _, p := range []sim.Program{
		threads(fence, store, start), threads(fence, start, store), threads(store, fence, start),
		threads(store, start, fence), threads(start, store, fence), threads(start, fence, store),
	} {
		p.Setup = func() { x, y = new(sim.Uint32), new(sim.Uint32) }
		r := sim.Run(t, p, sim.Options{Memory: sim.TSO, Reduce: sim.NoReduction})
		counts = append(counts, r.Schedules)
	}
	if slices.Min(counts) != slices.Max(counts) {
		t.Errorf("%d schedules by order of the threads", counts)
	}
}

// More threads than there are slots: what those that have ended left in their store buffers is not lost, and a fence that
// waits for one of them does not wait for its successor.
func TestThread_ManyAfterEachOther(t *testing.T) {
	var words [50]sim.Uint32
	p := threads(func() {
		for i := range words {
			sim.Go(func() { sim.StorePlain32(&words[i], 1) })
			sim.Yield()
		}
	}, func() { sim.HeavyFence() })
	p.Setup = func() { words = [50]sim.Uint32{} }
	p.Final = func() error {
		for i := range words {
			if words[i].Load() != 1 {
				return fmt.Errorf("store %d is lost", i)
			}
		}
		return nil
	}
	for _, s := range []sim.Strategy{sim.Exhaustive(0), sim.PCT(3, 1)} {
		sim.Run(t, p, sim.Options{Memory: sim.TSO, Strategy: s, Budget: 200})
	}
}

func TestThread_PanicGoexitAndRecover(t *testing.T) {
	var x *sim.Uint32
	setup := func() { x = new(sim.Uint32) }
	p := sim.Program{Setup: setup, Threads: []func(){func() { x.Add(1); panic("boom") }, func() { x.Add(1) }}}
	wantFailure(t, p, sim.Options{}, sim.KindPanic, "boom")

	// Goexit ends a thread like a return; the other one goes on, and nothing of it stays behind.
	before := runtime.NumGoroutine()
	p.Threads[0] = func() { defer x.Add(1); x.Add(1); runtime.Goexit() }
	p.Outcome = func() string { return fmt.Sprint(x.Load()) }
	wantOutcomes(t, p, sim.Options{}, "3")
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}

	// A schedule may end, here for its failure, while a thread is on its way out.
	p.Threads[0] = func() {
		defer func() {
			x.Add(1)
			x.Add(1)
		}()
		runtime.Goexit()
	}
	p.Threads[1] = func() { sim.Assert(x.Load() != 1, "halfway out") }
	wantFailure(t, p, sim.Options{}, sim.KindAssert, "halfway out")

	// Code that recovers and carries on does not keep the engine from ending a schedule.
	p.Threads[0] = func() {
		for range 3 {
			func() {
				defer func() { recover() }()
				x.Add(1)
			}()
		}
		sim.Failf("end")
	}
	p.Threads[1] = p.Threads[0]
	wantFailure(t, p, sim.Options{}, sim.KindAssert, "end")
}

func TestUnstableProgram_IsNoticed(t *testing.T) {
	var x *sim.Uint32
	runs := 0
	p := threads(func() {
		if runs%2 == 0 {
			x.Load()
		}
		x.Add(1)
		x.Add(1)
	}, func() { x.Add(1) })
	p.Setup = func() { x = new(sim.Uint32); runs++ }
	r := sim.Explore(p, sim.Options{})
	if r.Failure == nil || r.Failure.Kind != sim.KindUnstable {
		t.Errorf("%s", r)
	}
}

func TestCheck_SeesEveryPoint(t *testing.T) {
	var x, y *sim.Uint32
	p := threads(func() { x.Store(1); y.Store(1) }, func() { y.Load() })
	p.Setup = func() { x, y = new(sim.Uint32), new(sim.Uint32) }
	p.Check = func() error {
		if x.Load() != y.Load() {
			return fmt.Errorf("x is %d, y is %d", x.Load(), y.Load())
		}
		return nil
	}
	wantFailure(t, p, sim.Options{}, sim.KindCheck, "x is 1, y is 0")
}

func TestFatal_IsAFailureOrAnOutcome(t *testing.T) {
	var x *sim.Uint32
	p := threads(func() {
		if x.Swap(0) == 0 {
			sim.Fatal("unlock of unlocked")
		}
	}, func() { x.Store(1) })
	p.Setup = func() { x = new(sim.Uint32) }
	p.Outcome = func() string { return "fine" }
	wantFailure(t, p, sim.Options{}, sim.KindFatal, "unlock of unlocked")
	wantOutcomes(t, p, sim.Options{ExpectFatal: true}, "fatal: unlock of unlocked", "fine")
}

func TestMutant_ThatNobodyAsksForPanics(t *testing.T) {
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, `never asked for mutant "no such fault"`) {
			t.Errorf("panic %q", s)
		}
	}()
	sim.Explore(spinProgram(2, 1), sim.Options{Mutant: "no such fault"})
}

// record is a waiter record: a flag that the waker sets.
type record struct{ woken sim.Uint32 }

func TestQuarantine_FindsUseAfterPut(t *testing.T) {
	var (
		q   sim.Quarantine[record]
		r   *record
		mid *sim.Uint32
	)
	p := threads(
		func() {
			sim.WaitWhileEqual32(&r.woken, 0)
			q.Put(r)
		},
		func() {
			r.woken.Store(1)
			if sim.Mutant("waker looks again") {
				r.woken.Load()
			}
			mid.Store(1)
		})
	p.Setup = func() {
		r, mid = q.Get(), new(sim.Uint32)
		sim.Name(r, "waiter")
	}
	outcomes(t, p, sim.Options{})
	wantFailure(t, p, sim.Options{Mutant: "waker looks again"}, sim.KindPoison, "Load of waiter.woken, which is poisoned")
}

func TestHistory_Linearizability(t *testing.T) {
	type in struct{ write, v int }
	var (
		h *sim.History[in, int]
		x *sim.Uint32
	)
	step := func(s any, op sim.Op[in, int]) (any, bool) {
		if op.In.write == 1 {
			return op.In.v, true
		}
		return s, op.Out == s.(int)
	}
	read := func() int { return int(sim.LoadAcquire32(x)) }
	p := threads(
		func() {
			h.Do(in{1, 1}, func() int { sim.StoreRelease32(x, 1); return 0 })
			h.Do(in{}, read)
		},
		func() { h.Do(in{}, read); h.Do(in{1, 2}, func() int { sim.StoreRelease32(x, 2); return 0 }) })
	p.Setup = func() { h, x = new(sim.History[in, int]), new(sim.Uint32) }
	p.Final = func() error {
		if !h.Linearizable(0, step) {
			return fmt.Errorf("history is not linearizable")
		}
		return nil
	}
	outcomes(t, p, sim.Options{})
	// A write that returns while it sits in the store buffer is not linearizable: but each Do ends with a locked
	// instruction. Without it the other thread misses the write.
	p.Threads = []func(){
		func() { h.Do(in{1, 1}, func() int { sim.Go(func() { sim.StoreRelease32(x, 1) }); return 0 }) },
		func() { h.Do(in{}, read) },
	}
	wantFailure(t, p, sim.Options{}, sim.KindFinal, "not linearizable")
}

func TestMaxThreads_AndBadPrograms(t *testing.T) {
	for want, f := range map[string]func(){
		"has 0 threads, allowed are 1 to 32": func() { sim.Explore(sim.Program{Name: "empty"}, sim.Options{}) },
		"want a letter":                      func() { sim.Explore(spinProgram(1, 1), sim.Options{Strategy: sim.Replay("X3")}) },
		"does not go with memory AcqRel": func() {
			sim.Explore(spinProgram(1, 1), sim.Options{Reduce: sim.ByState, Memory: sim.AcqRel})
		},
		"boom in Setup": func() {
			sim.Explore(sim.Program{Setup: func() { panic("boom in Setup") }, Threads: []func(){func() {}}}, sim.Options{})
		},
	} {
		func() {
			defer func() {
				if s := fmt.Sprint(recover()); !strings.Contains(s, want) {
					t.Errorf("panic %q, want %q", s, want)
				}
			}()
			f()
		}()
	}
	if sim.Running() {
		t.Error("still running")
	}
}

// TestThreads_SlotsAreUsedAgain: more timers fire and more threads start than there is room for at a time.
func TestThreads_SlotsAreUsedAgain(t *testing.T) {
	var n *sim.Uint32
	p := threads(func() {
		for i := range uint32(300) {
			sim.AfterFunc(1, func() { n.Add(1) })
			sim.WaitWhileEqual32(n, i)
		}
	})
	p.Setup = func() { n = new(sim.Uint32) }
	p.Outcome = func() string { return fmt.Sprint(n.Load()) }
	wantOutcomes(t, p, sim.Options{Strategy: sim.Exhaustive(0)}, "300")
}

// TestMutant_ThatIsNotReachedInAFewSchedulesSurvives: a short look is no reason to complain.
func TestMutant_ThatIsNotReachedInAFewSchedulesSurvives(t *testing.T) {
	r := sim.Explore(mutexProgram(fullMutex, "L,L"), sim.Options{Mutant: "handoff clears P", Budget: 1})
	if r.Failure != nil || r.Schedules != 1 {
		t.Errorf("%s", r)
	}
}

// TestAcqRel_AWaitMayEndWithAnyValueThatDiffers: 1 was there before 2.
func TestAcqRel_AWaitMayEndWithAnyValueThatDiffers(t *testing.T) {
	var (
		x   *sim.Uint32
		got uint32
	)
	p := threads(
		func() { sim.StoreRelease32(x, 1); sim.StoreRelease32(x, 2) },
		func() {
			got = sim.WaitWhileEqualFor32(x, 0, time.Second)
			sim.Assert(sim.WaitWhileEqual32(x, 0) >= got, "went back")
		})
	p.Setup = func() { x = new(sim.Uint32) }
	p.Outcome = func() string { return fmt.Sprint(got) }
	for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
		wantOutcomes(t, p, sim.Options{Memory: m}, "0", "1", "2")
		wantOutcomes(t, p, sim.Options{Memory: m, Timers: sim.LastTime}, "1", "2")
	}
}
