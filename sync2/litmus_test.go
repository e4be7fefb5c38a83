package sync2_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// Litmus tests of each "synchronizes before" of package sync's documentation: two goroutines run a few steps on the same
// cells at the same time, many times, and some outcomes must never be seen. The cells are plain words: it is the
// primitives that have to order them.

// A cell is a plain word on a cache line of its own. The race detector does not see it, and calls keep the compiler from
// moving accesses over each other.
type cell struct {
	v int
	_ [120]byte
}

//go:norace
//go:noinline
func (c *cell) set(v int) { c.v = v }

//go:norace
//go:noinline
func (c *cell) get() int { return c.v }

// An arena is the shared memory of one round. Cells are fresh; what happened on them before does not matter.
type arena struct{ x, y cell }

// An outcome is what the two goroutines read; -1 stands for a step that was not taken.
type outcome struct{ first, second int }

type litmus struct {
	name string
	// prepare makes the primitives, which serve for all rounds, and returns what the two goroutines do in one.
	prepare   func(s subject) (first, second func(a *arena) (read int))
	forbidden func(o outcome) bool
}

func bothZero(o outcome) bool { return o.first == 0 && o.second == 0 }

// stale: the second goroutine saw y, or was told in some other way that the first one had been there, and not x.
func stale(o outcome) bool { return o.second == 10 }

// see encodes a read of y and a later one of x.
func see(y, x int) int { return 10*y + x }

var litmuses = []litmus{
	{"Mutex: stores before a section are seen after a later one", func(s subject) (first, second func(a *arena) int) {
		m := s.newMutex()
		return func(a *arena) int {
				a.x.set(1)
				m.Lock()
				a.y.set(1)
				m.Unlock()
				return -1
			}, func(a *arena) int {
				m.Lock()
				y := a.y.get()
				m.Unlock()
				return see(y, a.x.get())
			}
	}, stale},
	{"Mutex: sections are in one order", func(s subject) (first, second func(a *arena) int) {
		m := s.newMutex()
		return func(a *arena) int { a.x.set(1); m.Lock(); m.Unlock(); return a.y.get() },
			func(a *arena) int { a.y.set(1); m.Lock(); m.Unlock(); return a.x.get() }
	}, bothZero},
	{"Mutex: a store in a section and a load after it", func(s subject) (first, second func(a *arena) int) {
		m := s.newMutex()
		return func(a *arena) int { m.Lock(); a.x.set(1); m.Unlock(); return a.y.get() },
			func(a *arena) int { m.Lock(); a.y.set(1); m.Unlock(); return a.x.get() }
	}, bothZero},
	{"Mutex: a successful TryLock is a Lock", func(s subject) (first, second func(a *arena) int) {
		m := s.newMutex()
		return func(a *arena) int {
				a.x.set(1)
				m.Lock()
				a.y.set(1)
				m.Unlock()
				return -1
			}, func(a *arena) int {
				if !m.TryLock() {
					return -1
				}
				y := a.y.get()
				m.Unlock()
				return see(y, a.x.get())
			}
	}, stale},
	{"RWMutex: Unlock before RLock", func(s subject) (first, second func(a *arena) int) {
		m := s.newRWMutex()
		return func(a *arena) int {
				a.x.set(1)
				m.Lock()
				a.y.set(1)
				m.Unlock()
				return -1
			}, func(a *arena) int {
				m.RLock()
				y := a.y.get()
				m.RUnlock()
				return see(y, a.x.get())
			}
	}, stale},
	{"RWMutex: RUnlock before Lock", func(s subject) (first, second func(a *arena) int) {
		m := s.newRWMutex()
		return func(a *arena) int {
				a.x.set(1)
				m.RLock()
				a.y.set(1) // only one reader writes
				m.RUnlock()
				return -1
			}, func(a *arena) int {
				m.Lock()
				y := a.y.get()
				m.Unlock()
				return see(y, a.x.get())
			}
	}, stale},
	{"RWMutex: a successful TryRLock is an RLock", func(s subject) (first, second func(a *arena) int) {
		m := s.newRWMutex()
		return func(a *arena) int {
				a.x.set(1)
				m.Lock()
				a.y.set(1)
				m.Unlock()
				return -1
			}, func(a *arena) int {
				if !m.TryRLock() {
					return -1
				}
				y := a.y.get()
				m.RUnlock()
				return see(y, a.x.get())
			}
	}, stale},
	{"RWMutex: a reader's and a writer's sections are in one order", func(s subject) (first, second func(a *arena) int) {
		m := s.newRWMutex()
		return func(a *arena) int { a.x.set(1); m.Lock(); m.Unlock(); return a.y.get() },
			func(a *arena) int { a.y.set(1); m.RLock(); m.RUnlock(); return a.x.get() }
	}, bothZero},
	{"RWMutex: writers' sections are in one order", func(s subject) (first, second func(a *arena) int) {
		m := s.newRWMutex()
		return func(a *arena) int { a.x.set(1); m.Lock(); m.Unlock(); return a.y.get() },
			func(a *arena) int { a.y.set(1); m.Lock(); m.Unlock(); return a.x.get() }
	}, bothZero},
	{"Cond: Signal before the Wait that it ends", func(s subject) (first, second func(a *arena) int) {
		m := new(sync.Mutex) // not ours: its edges would hide a missing one of Cond no less, but also its faults
		c := s.newCond(m)
		var waited atomic.Int64
		return func(a *arena) int {
				before := waited.Load()
				a.x.set(1)
				for waited.Load() == before { // not holding L: the signal alone has to order
					c.Signal()
					runtime.Gosched()
				}
				return -1
			}, func(a *arena) int {
				m.Lock()
				c.Wait()
				x := a.x.get()
				m.Unlock()
				waited.Add(1)
				return see(1, x)
			}
	}, stale},
	{"Cond: Broadcast before the Wait that it ends", func(s subject) (first, second func(a *arena) int) {
		m := s.newMutex()
		c := s.newCond(m)
		return func(a *arena) int {
				a.x.set(1)
				m.Lock()
				a.y.set(1)
				c.Broadcast()
				m.Unlock()
				return -1
			}, func(a *arena) int {
				m.Lock()
				for a.y.get() == 0 {
					c.Wait()
				}
				m.Unlock()
				return see(1, a.x.get())
			}
	}, stale},
	{"WaitGroup: Done before the Wait that it ends", func(s subject) (first, second func(a *arena) int) {
		wg := s.newWaitGroup()
		var begun atomic.Int64
		rounds := int64(0)
		return func(a *arena) int {
				rounds++
				for begun.Load() < rounds {
					runtime.Gosched()
				}
				a.x.set(1)
				wg.Done()
				return -1
			}, func(a *arena) int {
				wg.Add(1)
				begun.Add(1)
				wg.Wait()
				return see(1, a.x.get())
			}
	}, stale},
	{"WaitGroup: the return of what Go calls before Wait", func(s subject) (first, second func(a *arena) int) {
		wg := s.newWaitGroup()
		return func(a *arena) int { return -1 }, func(a *arena) int {
			wg.Go(func() { a.x.set(1) })
			wg.Wait()
			return see(1, a.x.get())
		}
	}, stale},
}

func TestMemoryModelLitmus(t *testing.T) {
	for _, l := range litmuses {
		t.Run(strings.ReplaceAll(l.name, ":", ""), func(t *testing.T) {
			onEach(t, func(t *testing.T, s subject) {
				seen := l.play(s, testTime(150*time.Millisecond))
				rounds := 0
				for o, n := range seen {
					rounds += n
					if l.forbidden(o) {
						t.Errorf("forbidden outcome %+v seen %d times; all: %v", o, n, seen)
					}
				}
				t.Logf("%d rounds: %v", rounds, seen)
			})
		})
	}
}

// TestLitmusHarnessSeesAReordering: without any primitive the forbidden outcome of the store-buffering test turns up, so
// the harness makes goroutines overlap closely enough.
func TestLitmusHarnessSeesAReordering(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 || emulated() {
		t.Skip("needs two CPUs that run at the same time, and not an emulator's")
	}
	bare := litmus{prepare: func(subject) (first, second func(a *arena) int) {
		return func(a *arena) int { a.x.set(1); return a.y.get() }, func(a *arena) int { a.y.set(1); return a.x.get() }
	}}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if seen := bare.play(control, 50*time.Millisecond); seen[outcome{0, 0}] > 0 {
			t.Logf("%v", seen)
			return
		}
	}
	t.Error("two unordered stores and loads never looked reordered: the litmus tests of this package prove nothing here")
}

// play runs rounds for the given time, some at least, and returns the outcomes.
func (l litmus) play(s subject, d time.Duration) map[outcome]int {
	const batch = 256
	first, second := l.prepare(s)
	seen := map[outcome]int{}
	var arenas [batch]arena
	var reads [2][batch]int
	for begin := time.Now(); len(seen) == 0 || time.Since(begin) < d; {
		clear(arenas[:])
		var meet rendezvous
		runPair := func(who int, f func(a *arena) int) *locktest.Sleeper {
			r := rand.New(rand.NewPCG(rand.Uint64(), uint64(who)))
			return locktest.Start(func() {
				for i := range arenas {
					meet.at(2 * (i + 1))
					dawdle(r.IntN(200))
					reads[who][i] = f(&arenas[i])
				}
			})
		}
		a, b := runPair(0, first), runPair(1, second)
		<-a.Done()
		<-b.Done()
		for i := range arenas {
			seen[outcome{reads[0][i], reads[1][i]}]++
		}
	}
	return seen
}

// A rendezvous lets two goroutines go on at nearly the same moment.
type rendezvous struct{ arrived atomic.Int64 }

// at returns when n arrivals have been counted, this one included.
func (r *rendezvous) at(n int) {
	r.arrived.Add(1)
	for spins := 0; r.arrived.Load() < int64(n); spins++ {
		if spins > 5000 {
			runtime.Gosched()
		}
	}
}

// dawdle takes about n ns. Whoever arrives last at a rendezvous would otherwise always be ahead by the time that it takes
// a cache line to travel.
func dawdle(n int) {
	for range n {
		runtime.KeepAlive(n)
	}
}

func (o outcome) String() string { return fmt.Sprintf("(%d,%d)", o.first, o.second) }
