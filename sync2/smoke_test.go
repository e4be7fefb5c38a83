//go:build !sync2_std

package sync2

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestSmokeMutex(t *testing.T) {
	for _, g := range []int{2, 4, 16, 128, 1024} {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			var m Mutex
			n := 0
			var wg sync.WaitGroup
			for range g {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 20000 / g * 10 {
						m.Lock()
						n++
						m.Unlock()
					}
				}()
			}
			wg.Wait()
			if n != 20000/g*10*g {
				t.Fatal(n)
			}
			if s := m.state.Load(); s&^mutexParked != 0 {
				t.Fatal(s)
			}
		})
	}
}
func TestSmokeTimed(t *testing.T) {
	var m Mutex
	n, fails := 0, 0
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 300 {
				if (i+j)%3 == 0 {
					m.Lock()
				} else if (i+j)%3 == 1 {
					if !m.TryLockFor(time.Duration((i*j)%50) * time.Microsecond) {
						continue
					}
				} else {
					ctx, c := context.WithTimeout(context.Background(), time.Duration((i*j)%50)*time.Microsecond)
					err := m.LockContext(ctx)
					c()
					if err != nil {
						continue
					}
				}
				n++
				if j%16 == 0 {
					runtime.Gosched()
				}
				m.Unlock()
			}
		}()
	}
	wg.Wait()
	t.Log(n, fails)
	if s := m.state.Load(); s&^mutexParked != 0 {
		t.Fatal(s)
	}
}
func TestSmokeRW(t *testing.T) {
	var rw RWMutex
	n := 0
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 3000 {
				if (i+j)%5 == 0 {
					rw.Lock()
					n++
					rw.Unlock()
				} else if (i+j)%7 == 0 {
					rw.Lock()
					n++
					rw.Downgrade()
					_ = n
					rw.RUnlock()
				} else if (i+j)%11 == 0 {
					if rw.TryLockFor(20 * time.Microsecond) {
						n++
						rw.Unlock()
					}
				} else if (i+j)%13 == 0 {
					if rw.TryRLockFor(20 * time.Microsecond) {
						_ = n
						rw.RUnlock()
					}
				} else {
					rw.RLock()
					_ = n
					rw.RUnlock()
				}
			}
		}()
	}
	wg.Wait()
	if s := rw.state.Load(); s != 0 {
		t.Fatal(s)
	}
}
func TestSmokeCondWG(t *testing.T) {
	var m Mutex
	c := NewCond(&m)
	var wg WaitGroup
	ready := 0
	for range 1000 {
		wg.Go(func() {
			m.Lock()
			for ready == 0 {
				c.Wait()
			}
			ready++
			m.Unlock()
		})
	}
	time.Sleep(10 * time.Millisecond)
	m.Lock()
	ready = 1
	m.Unlock()
	c.Broadcast()
	wg.Wait()
	if ready != 1001 {
		t.Fatal(ready)
	}
}
func BenchmarkUncontended(b *testing.B) {
	b.Run("sync2", func(b *testing.B) {
		var m Mutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
	b.Run("sync", func(b *testing.B) {
		var m sync.Mutex
		for b.Loop() {
			m.Lock()
			m.Unlock()
		}
	})
}
func benchContended(b *testing.B, l sync.Locker, g int) {
	var wg sync.WaitGroup
	for range g {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range b.N / g {
				l.Lock()
				l.Unlock()
			}
		}()
	}
	wg.Wait()
}
func BenchmarkContended(b *testing.B) {
	for _, g := range []int{2, 16, 1024} {
		b.Run(fmt.Sprint("sync2/", g), func(b *testing.B) { benchContended(b, new(Mutex), g) })
		b.Run(fmt.Sprint("sync/", g), func(b *testing.B) { benchContended(b, new(sync.Mutex), g) })
	}
}
