//go:build sim

package sim_test

import (
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// TestTypes_HaveTheMethodsAndSizesOfSyncAtomic compares the method sets, so that code can be compiled on either.
func TestTypes_HaveTheMethodsAndSizesOfSyncAtomic(t *testing.T) {
	for _, pair := range [][2]any{
		{new(sim.Uint32), new(atomic.Uint32)}, {new(sim.Int32), new(atomic.Int32)},
		{new(sim.Uint64), new(atomic.Uint64)}, {new(sim.Int64), new(atomic.Int64)},
		{new(sim.Uintptr), new(atomic.Uintptr)}, {new(sim.Bool), new(atomic.Bool)},
		{new(sim.Pointer[int]), new(atomic.Pointer[int])},
	} {
		ours, theirs := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		if o, s := ours.Elem().Size(), theirs.Elem().Size(); o != s {
			t.Errorf("%v has %d bytes, %v has %d", ours, o, theirs, s)
		}
		if o, s := ours.NumMethod(), theirs.NumMethod(); o != s {
			t.Errorf("%v has %d methods, %v has %d", ours, o, theirs, s)
		}
		for i := range theirs.NumMethod() {
			want := theirs.Method(i)
			got, ok := ours.MethodByName(want.Name)
			if !ok {
				t.Errorf("%v lacks %s", ours, want.Name)
				continue
			}
			for in := 1; in < want.Type.NumIn(); in++ {
				if got.Type.In(in) != want.Type.In(in) {
					t.Errorf("%v.%s takes %v, want %v", ours, want.Name, got.Type, want.Type)
				}
			}
			if want.Type.NumOut() > 0 && got.Type.Out(0) != want.Type.Out(0) {
				t.Errorf("%v.%s returns %v, want %v", ours, want.Name, got.Type, want.Type)
			}
		}
	}
}

// operations calls every operation and returns what they return.
func operations() []any {
	var (
		u32 sim.Uint32
		i32 sim.Int32
		u64 sim.Uint64
		i64 sim.Int64
		up  sim.Uintptr
		b   sim.Bool
		p   sim.Pointer[int]
		one = new(int)
		two = new(int)
	)
	var r []any
	add := func(v ...any) { r = append(r, v...) }
	u32.Store(6)
	add(u32.Load(), u32.Swap(5), u32.CompareAndSwap(5, 9), u32.CompareAndSwap(5, 1), u32.Add(^uint32(0)), u32.And(12), u32.Or(3), u32.Load())
	i32.Store(-6)
	add(i32.Load(), i32.Swap(5), i32.CompareAndSwap(5, -9), i32.CompareAndSwap(5, 1), i32.Add(-1), i32.And(-4), i32.Or(3), i32.Load())
	u64.Store(1 << 40)
	add(u64.Load(), u64.Swap(5), u64.CompareAndSwap(5, 9), u64.CompareAndSwap(5, 1), u64.Add(^uint64(0)), u64.And(12), u64.Or(3), u64.Load())
	i64.Store(-6)
	add(i64.Load(), i64.Swap(5), i64.CompareAndSwap(5, -9), i64.CompareAndSwap(5, 1), i64.Add(-1), i64.And(-4), i64.Or(3), i64.Load())
	up.Store(6)
	add(up.Load(), up.Swap(5), up.CompareAndSwap(5, 9), up.CompareAndSwap(5, 1), up.Add(^uintptr(0)), up.And(12), up.Or(3), up.Load())
	b.Store(true)
	add(b.Load(), b.Swap(false), b.CompareAndSwap(false, true), b.CompareAndSwap(false, true), b.Load())
	p.Store(one)
	add(p.Load() == one, p.Swap(two) == one, p.CompareAndSwap(two, nil), p.CompareAndSwap(two, one), p.Load() == nil)
	sim.StorePlain32(&u32, 1)
	add(sim.LoadPlain32(&u32))
	sim.StoreRelease32(&u32, 2)
	sim.Fence()
	sim.HeavyFence()
	add(sim.LoadAcquire32(&u32))
	sim.StorePlainInt64(&i64, -1)
	add(sim.LoadPlainInt64(&i64))
	sim.StoreReleasePtr(&p, two)
	add(sim.LoadAcquirePtr(&p) == two)
	return r
}

// TestTypes_ReturnTheSameInAndOutsideOfARun runs the same operations in every memory and for real.
func TestTypes_ReturnTheSameInAndOutsideOfARun(t *testing.T) {
	want := []any{
		uint32(6), uint32(6), true, false, uint32(8), uint32(8), uint32(8), uint32(11),
		int32(-6), int32(-6), true, false, int32(-10), int32(-10), int32(-12), int32(-9),
		uint64(1 << 40), uint64(1 << 40), true, false, uint64(8), uint64(8), uint64(8), uint64(11),
		int64(-6), int64(-6), true, false, int64(-10), int64(-10), int64(-12), int64(-9),
		uintptr(6), uintptr(6), true, false, uintptr(8), uintptr(8), uintptr(8), uintptr(11),
		true, true, true, false, true,
		true, true, true, false, true,
		uint32(1), uint32(2), int64(-1), true,
	}
	if got := operations(); !reflect.DeepEqual(got, want) {
		t.Errorf("outside:\n got %v\nwant %v", got, want)
	}
	for _, m := range []sim.Memory{sim.SC, sim.TSO, sim.AcqRel} {
		var got []any
		sim.Run(t, sim.Program{Threads: []func(){func() { got = operations() }}}, sim.Options{Memory: m})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\n got %v\nwant %v", m, got, want)
		}
	}
}

// TestOutside_OtherGoroutinesStayReal lets real goroutines use the types while explorations are under way.
func TestOutside_OtherGoroutinesStayReal(t *testing.T) {
	before := runtime.NumGoroutine()
	var (
		stop  atomic.Bool
		count sim.Uint32
		mu    sim.Mutex
		plain uint32
		park  [2]sim.Parker
		wg    sync.WaitGroup
	)
	rounds := 20
	if raceEnabled {
		rounds = 2
	}
	for g := range 2 {
		wg.Go(func() {
			for !stop.Load() {
				mu.Lock()
				plain++
				mu.Unlock()
				count.Add(1)
				sim.Yield()
				park[g].Prepare()
				park[g].Unpark()
				park[g].Park("test")
			}
		})
	}
	alone := sim.Explore(spinProgram(2, 2), sim.Options{Strategy: sim.Exhaustive(sim.Unbounded)})
	for range 2 { // two engines side by side
		wg.Go(func() {
			for range rounds {
				if r := sim.Explore(spinProgram(2, 2), sim.Options{Strategy: sim.Exhaustive(sim.Unbounded)}); r.Schedules != alone.Schedules || r.Steps != alone.Steps {
					t.Errorf("%s; want %s", r, alone)
				}
			}
			stop.Store(true)
		})
	}
	wg.Wait()
	if plain != count.Load() {
		t.Errorf("%d increments under the mutex, %d atomic ones", plain, count.Load())
	}
	if sim.Running() || sim.Pin() != 0 || sim.CPU() != 0 || sim.Mutant("load then store") || sim.Choose(3) != 0 {
		t.Error("a test is taken for a simulated thread")
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

// TestOutside_TimersAndSemaphores uses what falls back to package time and sync.
func TestOutside_TimersAndSemaphores(t *testing.T) {
	var s sim.Semaphore
	sim.AfterFunc(time.Millisecond, s.Release)
	s.Acquire()
	if tm := sim.AfterFunc(time.Hour, s.Release); !tm.Stop() {
		t.Error("timer of an hour had fired")
	}
	a := sim.Nanotime()
	sim.Sleep(time.Millisecond)
	if b := sim.Nanotime(); b-a < int64(time.Millisecond) {
		t.Errorf("a millisecond took %d ns", b-a)
	}
	var x sim.Uint32
	sim.Go(func() { x.Store(1) })
	sim.WaitWhileEqual32(&x, 0)
}
