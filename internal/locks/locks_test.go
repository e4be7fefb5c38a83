package locks

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// crowd returns n threads on two domains of each of two sockets, neighbours apart.
func crowd(n int) []Place {
	threads := make([]Place, n)
	for i := range threads {
		threads[i] = Place{Domain: i % 4, Socket: i % 4 / 2}
	}
	return threads
}

// eager returns the lock with every threshold so low that all it can do happens.
func eager(l Lock) Lock {
	if k, ok := l.(*HQKernel); ok {
		k.budget, k.general, k.remote, k.keep, k.streak = 2, 0, 0, 1, 0
	}
	return l
}

// undecided returns a hierarchical lock whose flat queue has been closed.
func undecided(threads []Place) Lock {
	l := eager(NewHQKernel(threads)).(*HQKernel)
	l.word.Store(hqModeNone | hqClosed)
	return l
}

func hammer(t *testing.T, l Lock, threads, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	count := 0
	for i := range threads {
		wg.Go(func() {
			for range rounds {
				l.Lock(i)
				count++
				l.Unlock(i)
			}
		})
	}
	wg.Wait()
	if count != threads*rounds {
		t.Errorf("%d sections instead of %d", count, threads*rounds)
	}
}

func TestExclusion(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			hammer(t, k.New(crowd(2)), 2, rounds)
		})
	}
	hammer(t, undecided(crowd(2)), 2, rounds)
}

// More threads than CPUs: every hand-over may wait for a time slice, so few suffice to fill the test's time.
func TestExclusion_Oversubscribed(t *testing.T) {
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(6))
			hammer(t, eager(k.New(crowd(6))), 6, 60)
		})
	}
}

func TestNew_UnknownNameIsExplained(t *testing.T) {
	_, err := New("mutex", crowd(1))
	if want := `locks: no lock "mutex"; want one of tas, ttas`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s…", err, want)
	}
	for _, k := range Kinds {
		if l, err := New(k.Name, crowd(1)); l == nil || err != nil {
			t.Errorf("New(%q) = %v, %v", k.Name, l, err)
		}
	}
}

// What different threads write lies on different lines.
func TestTypesFillLines(t *testing.T) {
	for name, size := range map[string]uintptr{
		"node": unsafe.Sizeof(node{}), "clhNode": unsafe.Sizeof(clhNode{}), "clhThread": unsafe.Sizeof(clhThread{}),
		"ttasThread": unsafe.Sizeof(ttasThread{}), "cnaNode": unsafe.Sizeof(cnaNode{}), "cohortDomain": unsafe.Sizeof(cohortDomain{}),
		"cohortThread": unsafe.Sizeof(cohortThread{}), "hmcsLevel": unsafe.Sizeof(hmcsLevel{}), "hmcsThread": unsafe.Sizeof(hmcsThread{}),
		"hqDomain": unsafe.Sizeof(hqDomain{}), "hqNode": unsafe.Sizeof(hqNode{}),
	} {
		if size%line != 0 {
			t.Errorf("%s has %d bytes, no multiple of %d", name, size, line)
		}
	}
}

func TestHMCS_LeavesOutLevelsWithOneChild(t *testing.T) {
	for _, c := range []struct {
		threads []Place
		levels  int
	}{
		{[]Place{{0, 0}}, 2},
		{[]Place{{0, 0}, {1, 0}}, 3},
		{[]Place{{0, 0}, {1, 1}}, 3},
		{[]Place{{0, 0}, {1, 0}, {2, 1}, {3, 1}}, 7},
	} {
		if l := NewHMCS(c.threads); len(l.levels) != c.levels {
			t.Errorf("%v: %d levels, want %d", c.threads, len(l.levels), c.levels)
		}
	}
}

func Benchmark(b *testing.B) {
	for _, k := range Kinds {
		b.Run(fmt.Sprintf("lock=%s/threads=1", k.Name), func(b *testing.B) {
			l := k.New(crowd(1))
			for range b.N {
				l.Lock(0)
				l.Unlock(0)
			}
		})
	}
}
