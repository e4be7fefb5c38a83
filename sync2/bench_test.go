package sync2_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/sync2"
)

// Benchmarks of what has a target, on both packages: benchstat -col /impl sets them side by side. What is judged is
// measured by the bench command, with interleaved samples and waits.

//lint:file-ignore SA2001 an empty section is what is measured

func BenchmarkMutexUncontended(b *testing.B) {
	b.Run("impl=sync", func(b *testing.B) {
		var m sync.Mutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
	b.Run("impl=sync2", func(b *testing.B) {
		var m sync2.Mutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
}

func BenchmarkRWMutexReadAlone(b *testing.B) {
	b.Run("impl=sync", func(b *testing.B) {
		var m sync.RWMutex
		for b.Loop() {
			m.RLock()
			m.RUnlock()
		}
	})
	b.Run("impl=sync2", func(b *testing.B) {
		var m sync2.RWMutex
		for b.Loop() {
			m.RLock()
			m.RUnlock()
		}
	})
}

func BenchmarkRWMutexWriteAlone(b *testing.B) {
	b.Run("impl=sync", func(b *testing.B) {
		var m sync.RWMutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
	b.Run("impl=sync2", func(b *testing.B) {
		var m sync2.RWMutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
}

// benchEach runs f on both packages, under a name that ends with the parameters.
func benchEach(b *testing.B, params string, f func(b *testing.B, s subject)) {
	for _, s := range subjects {
		b.Run("impl="+s.name+params, func(b *testing.B) { f(b, s) })
	}
}

// together lets g goroutines do b.N operations between them, each of them b.N/g in a row.
func together(b *testing.B, g int, body func(n int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range g {
		n := (b.N + i) / g
		all.Go(func() {
			<-start
			body(n)
		})
	}
	b.ResetTimer()
	close(start)
	all.Wait()
}

// work takes the time of n dependent steps.
func work(x uint64, n int) uint64 {
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func BenchmarkMutex(b *testing.B) {
	for _, g := range []int{2, 4, 16, 128, 1024} {
		for _, steps := range [][2]int{{0, 0}, {0, 100}, {20, 20}, {20, 200}, {200, 200}, {1000, 200}} {
			benchEach(b, fmt.Sprintf("/g=%d/in=%d/out=%d", g, steps[0], steps[1]), func(b *testing.B, s subject) {
				m, shared := s.newMutex(), uint64(1)
				together(b, g, func(n int) {
					own := uint64(1)
					for range n {
						m.Lock()
						shared = work(shared, steps[0])
						m.Unlock()
						own = work(own, steps[1])
					}
					runtime.KeepAlive(own)
				})
			})
		}
	}
}

func BenchmarkMutexOversubscribed(b *testing.B) {
	procs := 8 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	benchEach(b, fmt.Sprintf("/procs=%d/g=%d", procs, procs), func(b *testing.B, s subject) {
		m, shared := s.newMutex(), uint64(1)
		together(b, procs, func(n int) {
			for range n {
				m.Lock()
				shared = work(shared, 200)
				m.Unlock()
			}
		})
	})
}

func BenchmarkRWMutex(b *testing.B) {
	g := runtime.GOMAXPROCS(0)
	for _, percent := range []int{0, 1, 10} {
		benchEach(b, fmt.Sprintf("/g=%d/writes=%d%%", g, percent), func(b *testing.B, s subject) {
			m, shared := s.newRWMutex(), 0
			together(b, g, func(n int) {
				for i := range n {
					if i%100 < percent {
						m.Lock()
						shared++
						m.Unlock()
					} else {
						m.RLock()
						m.RUnlock()
					}
				}
			})
		})
	}
}

// BenchmarkCondBroadcast: one operation is a broadcast, until all waiters have run under the lock.
func BenchmarkCondBroadcast(b *testing.B) {
	const waiters = 1000
	for _, steps := range []int{0, 100} {
		benchEach(b, fmt.Sprintf("/waiters=%d/in=%d", waiters, steps), func(b *testing.B, s subject) {
			m := s.newMutex()
			c := s.newCond(m)
			gathered, done := make(chan struct{}, 1), make(chan struct{}, 1)
			round, waiting, ran, shared := 0, 0, 0, uint64(1)
			for range waiters {
				go func() {
					m.Lock()
					defer m.Unlock()
					for round <= b.N {
						if waiting++; waiting == waiters {
							gathered <- struct{}{}
						}
						for mine := round; round == mine; {
							c.Wait()
						}
						shared = work(shared, steps)
						if ran++; ran == waiters {
							done <- struct{}{}
						}
					}
				}()
			}
			b.StopTimer()
			for range b.N + 1 { // the last one sends them home
				<-gathered
				m.Lock()
				round++
				waiting, ran = 0, 0
				b.StartTimer()
				c.Broadcast()
				m.Unlock()
				<-done
				b.StopTimer()
			}
		})
	}
}

func BenchmarkCondPingPong(b *testing.B) {
	benchEach(b, "", func(b *testing.B, s subject) {
		m := s.newMutex()
		side := [2]cond{s.newCond(m), s.newCond(m)}
		turn := 0
		var all sync.WaitGroup
		for me := range 2 {
			all.Go(func() {
				m.Lock()
				defer m.Unlock()
				for range b.N {
					for turn != me {
						side[me].Wait()
					}
					turn = 1 - me
					side[turn].Signal()
				}
			})
		}
		all.Wait()
	})
}

func BenchmarkWaitGroup(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		benchEach(b, fmt.Sprintf("/forkjoin=%d", n), func(b *testing.B, s subject) {
			wg := s.newWaitGroup()
			for range b.N {
				wg.Add(n)
				for range n {
					go wg.Done()
				}
				wg.Wait()
			}
		})
	}
	benchEach(b, "/adddone=1", func(b *testing.B, s subject) {
		wg := s.newWaitGroup()
		for range b.N {
			wg.Add(1)
			wg.Done()
		}
	})
}

// BenchmarkMutexParked: one operation is one of the goroutines that wait on many mutexes getting through its Lock and
// Unlock.
func BenchmarkMutexParked(b *testing.B) {
	const mutexes, each = 10_000, 10
	benchEach(b, fmt.Sprintf("/mutexes=%d/waiters=%d", mutexes, mutexes*each), func(b *testing.B, s subject) {
		locks := make([]locktest.Mutex, mutexes)
		for i := range locks {
			locks[i] = s.newMutex()
		}
		var waiters sync.WaitGroup
		b.StopTimer()
		for done := 0; done < b.N; {
			for _, m := range locks {
				m.Lock()
			}
			var started atomic.Int64
			n := min(b.N-done, mutexes*each)
			for i := range n {
				waiters.Go(func() {
					started.Add(1)
					locks[i%mutexes].Lock()
					locks[i%mutexes].Unlock()
				})
			}
			for started.Load() < int64(n) {
				runtime.Gosched()
			}
			b.StartTimer()
			for _, m := range locks {
				m.Unlock()
			}
			waiters.Wait()
			b.StopTimer()
			done += n
		}
	})
}
