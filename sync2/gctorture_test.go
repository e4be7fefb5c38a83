package sync2_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// Parked goroutines are found and woken through numbers that the garbage collector does not see, while it moves their
// stacks. The child collects all the time, overwrites what it frees and checks what it marked.

var gcTortures = []struct {
	name string
	env  []string
}{
	{"CollectAllTheTime", []string{"GOGC=1"}},
	{"ClobberWhatIsFreed", []string{"GOGC=1", "GODEBUG=clobberfree=1"}},
	{"CheckWhatWasMarked", []string{"GOGC=1", "GODEBUG=gccheckmark=1"}},
	{"ShrinkNoStack", []string{"GOGC=1", "GODEBUG=gcshrinkstackoff=1,clobberfree=1"}},
	{"StopTheWorldCollector", []string{"GOGC=1", "GODEBUG=gcstoptheworld=2,clobberfree=1"}},
}

func TestWaitersSurviveTheGarbageCollector(t *testing.T) {
	for _, torture := range gcTortures {
		t.Run(torture.name, func(t *testing.T) {
			t.Parallel()
			seed := locktest.Seed(t)
			env := append(torture.env, fmt.Sprintf("%s=%d", locktest.SeedEnv, seed), timeEnv+"="+testTime(2*time.Second).String())
			r := startChild(t, ours, gcTorture, 6*time.Minute, env...)
			if r.exit != 0 {
				t.Fatal(r)
			}
			t.Log(r.stdout)
		})
	}
}

var gcTorture = child("GCTorture", func(s subject) {
	debug.SetTraceback("all")
	w := newWorkshop(s)
	done := make(chan struct{})
	for id := range w.workers {
		go func() { w.work(id); done <- struct{}{} }()
	}
	collections := 0
	for end := time.Now().Add(childTime()); time.Now().Before(end); collections++ {
		runtime.GC() // shrinks the stacks of sleepers too
		w.pass()     // all workers may be waiting for it
		time.Sleep(time.Millisecond)
	}
	w.stop.Store(true)
	w.pass()
	for range w.workers {
		select {
		case <-done:
		case <-time.After(3 * time.Minute): // a turn beside a collector that stops the world takes one on an emulated machine
			panic("lost: a worker has not come back three minutes after the end")
		}
	}
	if w.shared != w.writes.Load() {
		panic(fmt.Sprintf("%d writes left %d in the shared word", w.writes.Load(), w.shared))
	}
	if w.turns.Load() == 0 || collections == 0 {
		panic("nothing happened")
	}
	fmt.Printf("%d turns, %d collections\n", w.turns.Load(), collections)
})

// A workshop is a place where workers meet on every primitive at changing stack depths, and throw much away.
type workshop struct {
	s       subject
	workers int
	stop    atomic.Bool
	turns   atomic.Int64
	writes  atomic.Int64

	m      locktest.Mutex
	rw     rwMutex
	shared int64 // guarded by rw

	mu   locktest.Mutex
	cond cond
	gate int // guarded by mu
}

func newWorkshop(s subject) *workshop {
	w := &workshop{s: s, workers: 16, m: s.newMutex(), rw: s.newRWMutex(), mu: s.newMutex()}
	w.cond = s.newCond(w.mu)
	return w
}

func (w *workshop) work(id int) {
	r := rand.New(rand.NewPCG(seedFromEnv(), uint64(id)))
	for !w.stop.Load() {
		deep(r.IntN(200), func() { w.turn(r) })
		w.turns.Add(1)
	}
}

// deep calls f with n frames of about a kilobyte below it, so that the stack has to grow, and on return can shrink.
func deep(n int, f func()) int {
	if n == 0 {
		f()
		return 0
	}
	var pad [128]int
	pad[n%len(pad)] = n
	return deep(n-1, f) + pad[n%len(pad)]
}

func (w *workshop) turn(r *rand.Rand) {
	switch r.IntN(6) {
	case 0:
		w.m.Lock()
		litter(r)
		w.m.Unlock()
	case 1:
		w.rw.Lock()
		w.shared++
		litter(r)
		w.writes.Add(1)
		w.rw.Unlock()
	case 2:
		w.rw.RLock()
		litter(r)
		w.rw.RUnlock()
	case 3:
		w.waitForGate()
	case 4:
		w.pass()
	case 5:
		w.shortLived(r)
	}
}

// waitForGate sleeps until somebody passes.
func (w *workshop) waitForGate() {
	w.mu.Lock()
	for was := w.gate; w.gate == was && !w.stop.Load(); {
		w.cond.Wait()
	}
	w.mu.Unlock()
}

func (w *workshop) pass() {
	w.mu.Lock()
	w.gate++
	w.cond.Broadcast()
	w.mu.Unlock()
}

// shortLived contends on primitives that become garbage at once.
func (w *workshop) shortLived(r *rand.Rand) {
	m, wg := w.s.newMutex(), w.s.newWaitGroup()
	m.Lock()
	for range 4 {
		n := r.IntN(50)
		wg.Go(func() {
			deep(n, func() { m.Lock(); m.Unlock() })
		})
	}
	runtime.Gosched()
	m.Unlock()
	wg.Wait()
}

var litterBin atomic.Pointer[[]byte]

func litter(r *rand.Rand) {
	b := make([]byte, 1+r.IntN(2048))
	litterBin.Store(&b)
	if r.IntN(8) == 0 {
		runtime.Gosched()
	}
}
