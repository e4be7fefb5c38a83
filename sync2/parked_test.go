//go:build !sync2_std

package sync2

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// inChild reports whether this is a child process that runs the calling test
// alone. If not it starts one and reports for it: what the test does to the
// default table, or measures in the process, cannot be undone. A measurement
// that other processes disturb may have several tries.
func inChild(t *testing.T, tries int) bool {
	const mark = "HQSYNC_PARKED_CHILD"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(os.Getenv("HQSYNC_EXEC")), exe,
		"-test.v", "-test.run=^"+t.Name()+"$", "-test.short="+strconv.FormatBool(testing.Short()))
	for try := 1; ; try++ {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), mark+"="+t.Name())
		out, err := cmd.CombinedOutput()
		t.Logf("child:\n%s", out)
		var exit *exec.ExitError
		switch {
		case err == nil:
			return false
		case !errors.As(err, &exit):
			t.Skipf("cannot start a child, HQSYNC_EXEC must name the emulator: %v", err)
		case try == tries:
			t.Fatal(err)
		}
	}
}

// 100,000 goroutines on 10,000 mutexes, while the table under them is resized a
// thousand times: before they have all parked, while they are parked, and while
// they are woken.
func TestParkedWaiters_SurviveAThousandResizes(t *testing.T) {
	if !inChild(t, 1) {
		return
	}
	defer goleak.VerifyNone(t)
	mutexes, each, resizes := 10_000, 10, 1000
	scale := 1
	if testing.Short() {
		scale *= 4
	}
	if race.Enabled {
		scale *= 5
	}
	if os.Getenv("HQSYNC_EXEC") != "" {
		scale *= 5
	}
	if numatest.Emulated() {
		scale *= 20 // who parks waits for an emulated CPU, whose turn on a real one may be long in coming
	}
	mutexes, resizes = mutexes/scale, resizes/scale
	t.Logf("scale 1/%d: %d goroutines on %d mutexes, %d resizes", scale, mutexes*each, mutexes, resizes)
	begin := time.Now()
	watch := time.AfterFunc(5*time.Minute, func() { panic("not all have woken") })
	defer watch.Stop()

	var asked, allowed atomic.Int64 // resizes made, resizes that may be made
	resized := make(chan bool)
	go func() {
		defer close(resized)
		sizes := []uint64{2, 64, 1024, 65536}
		for i := range int64(resizes) {
			for allowed.Load() <= i {
				time.Sleep(time.Millisecond)
			}
			n := sizes[i%4]
			if err := parking.Default().SetSlots(n, 0); err != nil || parking.Default().Slots() != int(n) {
				t.Errorf("SetSlots(%d): %v, Slots says %d", n, err, parking.Default().Slots())
			}
			asked.Add(1)
		}
	}()

	type hot struct {
		m     Mutex
		order []int // guarded by m: who got it
	}
	all := make([]hot, mutexes)
	for i := range all {
		all[i].m.Lock()
	}
	allowed.Store(int64(resizes) / 4)
	var wg sync.WaitGroup
	for j := range each {
		for i := range all {
			wg.Go(func() {
				h := &all[i]
				h.m.Lock()
				h.order = append(h.order, j)
				h.m.Unlock()
			})
		}
		for i := range all { // number j of every mutex has parked before number j+1 comes
			for parkedOn(&all[i].m) <= j {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	t.Logf("all parked after %v and %d resizes", time.Since(begin).Round(time.Millisecond), asked.Load())

	allowed.Store(int64(resizes) * 3 / 4)
	for asked.Load() < allowed.Load() {
		time.Sleep(time.Millisecond)
	}
	for i := range all {
		if n := parkedOn(&all[i].m); n != each {
			t.Fatalf("%d goroutines are parked on mutex %d", n, i)
		}
	}
	t.Logf("%d resizes after %v", asked.Load(), time.Since(begin).Round(time.Millisecond))

	allowed.Store(int64(resizes))
	for i := range all {
		all[i].m.Unlock()
	}
	wg.Wait()
	<-resized
	t.Logf("all woken and %d resizes after %v", asked.Load(), time.Since(begin).Round(time.Millisecond))
	for i := range all {
		for j, got := range all[i].order {
			if got != j {
				t.Fatalf("mutex %d was acquired in the order %v", i, all[i].order)
			}
		}
	}

	checkFinal(t)
}

// checkFinal makes the default table immutable and checks that it stays so.
func checkFinal(t *testing.T) {
	tab := parking.Default()
	if err := tab.SetSlots(256, parking.Immutable); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= parking.MaxSlots; n *= 2 {
		for flags := range uint32(2) {
			size := n
			if n == 1 {
				size = 0
			}
			if err := tab.SetSlots(size, flags); err != parking.ErrBusy {
				t.Errorf("SetSlots(%d, %d) of an immutable table: %v", size, flags, err)
			}
		}
	}
	if tab.Slots() != 256 || !tab.Immutable() {
		t.Errorf("%d slots, immutable %v", tab.Slots(), tab.Immutable())
	}
	contend(new(Mutex), 16)
}

// parkedOn returns the number of goroutines that are parked on m.
func parkedOn(m *Mutex) (n int) {
	parking.Default().UnparkFilter(m.key(m.tag.Load()&tagNode), func(parking.ParkToken) parking.FilterOp { n++; return parking.Skip }, nil)
	return n
}

// contend has n goroutines park on l, and lets them go.
func contend(l Locker, n int) {
	var wg sync.WaitGroup
	l.Lock()
	for range n {
		wg.Go(func() { l.Lock(); l.Unlock() })
	}
	time.Sleep(50 * time.Millisecond) // the first contention of a process has to register its fence
	l.Unlock()
	wg.Wait()
}

// The first contended mutex brings the table and its records into the process.
func TestOneContendedMutex_CostsAtMost64KiB(t *testing.T) {
	if !inChild(t, 16) {
		return
	}
	if race.Enabled {
		t.Skip("the race detector's shadow memory is counted too")
	}
	const limit = 64 << 10
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	manyThreads(16)
	for range 20 { // stacks and what the measurement itself takes come first
		contend(new(sync.Mutex), 4)
		debug.FreeOSMemory()
		heapInUse()
		settled()
	}
	// What finding out about the machine leaves behind is garbage, which goes back
	// to the system on both sides of the measurement.
	heap, before := heapInUse(), settled()
	contend(new(Mutex), 4)
	after := settled()
	heap = heapInUse() - heap
	t.Logf("heap %+d bytes, resident anonymous memory %+d bytes", heap, after-before)
	if parking.Default().Slots() == 0 {
		t.Error("nobody parked")
	}
	if heap > limit {
		t.Errorf("the heap grew by %d bytes", heap)
	}
	if os.Getenv("HQSYNC_EXEC") != "" {
		return // an emulator's memory is resident here too
	}
	if after-before > limit {
		t.Errorf("resident memory grew by %d bytes", after-before)
	}
}

// manyThreads leaves the runtime so many threads: on a busy machine it starts
// another one whenever a system call takes long, some 50 KiB each.
func manyThreads(n int) {
	var here, done sync.WaitGroup
	here.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			here.Done()
			here.Wait()
		})
	}
	done.Wait()
}

// settled returns the resident memory without garbage.
func settled() int64 {
	for range 3 {
		debug.FreeOSMemory()
	}
	return resident()
}

// heapInUse returns the bytes of reachable heap objects.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident returns the bytes of anonymous memory that are resident, as Linux
// counts them; elsewhere 0. The sums in status and statm are only kept to within
// a batch of pages for each CPU; smaps looks at the pages.
func resident() (n int64) {
	b, _ := os.ReadFile("/proc/self/smaps_rollup")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Anonymous:"); ok {
			fmt.Sscan(rest, &n)
		}
	}
	return n << 10
}
