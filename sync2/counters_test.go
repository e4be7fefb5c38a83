//go:build !sync2_std && !sim

package sync2

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// countByP switches rw's counters on.
func countByP(t *testing.T, rw *RWMutex) {
	t.Helper()
	if !perPReaders {
		t.Skip("this build counts readers in the word only")
	}
	rw.clashes.Store(clashesMost)
	rw.RLock()
	rw.grow()
	rw.RUnlock()
	if s := rw.state.Load(); s&(rwWriter|rwCounted) != rwCounted {
		t.Fatalf("state %#x after enough clashes, want readers counted by P", s)
	}
}

func TestRWMutexCountersComeWithReadersAndGoWithAWriter(t *testing.T) {
	var rw RWMutex
	onMany(t)
	countByP(t, &rw)
	before := rw.state.Load()
	rw.RLock()
	if s := rw.state.Load(); s != before {
		t.Errorf("state %#x -> %#x by a reader, want it in a counter", before, s)
	}
	if rw.TryLock() {
		t.Error("TryLock got in beside a reader")
	}
	if !rw.TryRLock() {
		t.Error("TryRLock failed beside a reader")
	}
	rw.RUnlock()
	rw.RUnlock()
	if !rw.TryLock() {
		t.Fatal("TryLock failed on a free lock")
	}
	rw.Unlock()
	if s, sum := rw.state.Load(), rw.counters.Load().sum(); s != 0 || sum != 0 {
		t.Errorf("state %#x, sum %d after a writer, want 0, 0", s, sum)
	}
	c := rw.counters.Load()
	c.until.Store(1<<63 - 1)
	rw.clashes.Store(clashesMost)
	rw.RLock()
	rw.grow()
	if s := rw.state.Load(); s != rwReader {
		t.Errorf("state %#x while the counters are inhibited, want one reader in the word", s)
	}
	rw.RUnlock()
	c.until.Store(0)
	countByP(t, &rw)
}

func TestRWMutexCountersAreALineEach(t *testing.T) {
	rw := new(RWMutex)
	rw.counters.Store(newCounters(7)) // on the heap, as in use
	c := rw.counters.Load()
	if size := unsafe.Sizeof(c.each[0]); size != lineSize {
		t.Errorf("a counter of %d bytes, want %d", size, lineSize)
	}
	if at := uintptr(unsafe.Pointer(&c.each[0])); at%lineSize != 0 {
		t.Errorf("counters at %#x, want a multiple of %d", at, lineSize)
	}
}

func TestRWMutexWithoutCountersInThePoolCountsInTheWord(t *testing.T) {
	if !perPReaders {
		t.Skip("this build counts readers in the word only")
	}
	onMany(t)
	var held []*counters
	for {
		c := pooledCounters()
		if c == nil {
			break
		}
		if held = append(held, c); len(held) > maxCounters {
			t.Fatalf("more than %d counters", maxCounters)
		}
	}
	var rw RWMutex
	rw.clashes.Store(clashesMost)
	rw.RLock()
	rw.grow()
	if rw.state.Load() != rwReader || rw.counters.Load() != nil {
		t.Errorf("state %#x, want one reader in the word", rw.state.Load())
	}
	rw.RUnlock()
	runtime.KeepAlive(held)
	held = nil
	for end := time.Now().Add(time.Minute); livingCounters.Load() >= maxCounters; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("counters that are garbage do not go back to the pool")
		}
	}
}

// Readers and writers of every kind while the counters come and go and GOMAXPROCS
// changes beyond what the counters were made for.
func TestRWMutexCountersUnderChange(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	var rw RWMutex
	onMany(t)
	countByP(t, &rw)
	var data [2]int
	write := func() { data[0]++; data[1]++ }
	read := func() {
		if data[0] != data[1] {
			t.Error("a reader beside a writer")
		}
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20_000 {
				switch rng.IntN(64) {
				case 0:
					rw.Lock()
					write()
					rw.Unlock()
				case 1:
					if rw.TryLockFor(time.Duration(rng.IntN(20)) * time.Microsecond) {
						write()
						rw.Downgrade()
						read()
						rw.RUnlock()
					}
				case 2:
					rw.clashes.Store(clashesMost)
					rw.RLock()
					rw.counters.Load().until.Store(0)
					rw.grow()
					rw.RUnlock()
				case 3:
					rw.RLock()
					runtime.Gosched() // to leave on another P, perhaps
					read()
					rw.RUnlock()
				default:
					rw.RLock()
					read()
					rw.RUnlock()
				}
			}
		})
	}
	for i := range 20 {
		runtime.GOMAXPROCS(1 + i%(procs+3))
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	rw.Lock()
	rw.Unlock()
	if s := rw.state.Load(); s != 0 {
		t.Errorf("state %#x after a writer at rest, want 0", s)
	}
}
