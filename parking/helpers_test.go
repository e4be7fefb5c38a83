package parking_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// The runtime's goroutine that frees the memory of old hashes is not a leak.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hqsync/hqsync/parking.freeBuckets"))
}

// emulated reports whether this binary runs in an emulator.
var emulated = numatest.Emulated() || os.Getenv("HQSYNC_EXEC") != "" || runtime.GOARCH == "arm64" && runtime.NumCPU() < 4

// effort scales a number of rounds to how slow this build is, and says so.
func effort(t testing.TB, n int) int {
	d := 1
	if testing.Short() {
		d *= 4
	}
	if race.Enabled {
		d *= 5
	}
	if emulated {
		d *= 8
	}
	if d > 1 {
		n = max(n/d, 1)
		t.Logf("scaled down to 1/%d: %d", d, n)
	}
	return n
}

// seed returns the seed of a random test and prints it if the test fails.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("HQSYNC_SEED"), 10, 64); err == nil {
		s = v
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("HQSYNC_SEED=%d", s)
		}
	})
	return s
}

// within fails the test with a dump of all goroutines if f takes longer than d.
func within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	timer := time.AfterFunc(d, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s: not done after %v: a wake-up was lost\n%s", t.Name(), d, buf[:runtime.Stack(buf, true)]))
	})
	defer timer.Stop()
	f()
}

// patience is how long something that must happen may take on a slow machine.
const patience = 90 * time.Second

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not yet after %v: %s", patience, what)
		}
	}
}

// keys returns n keys of words that stay alive until the test ends.
func keys(t testing.TB, n int) []parking.Key {
	words := make([]uint32, n)
	t.Cleanup(func() { runtime.KeepAlive(words) })
	ks := make([]parking.Key, n)
	for i := range ks {
		ks[i].Addr = parking.AddrOf(&words[i])
	}
	return ks
}

// A sleeper is a goroutine that parks once.
type sleeper struct {
	result parking.Result
	done   chan struct{}
}

// sleep starts a goroutine that parks on key and returns after it has queued.
func sleep(tab *parking.Table, key parking.Key, opts parking.Options) *sleeper {
	s := &sleeper{done: make(chan struct{})}
	queued := make(chan struct{})
	go func() {
		defer close(s.done)
		s.result = tab.Park(key, nil, func() { close(queued) }, nil, &opts)
	}()
	<-queued
	return s
}

// sleepers starts n of them, one after another.
func sleepers(tab *parking.Table, key parking.Key, n int) []*sleeper {
	all := make([]*sleeper, n)
	for i := range all {
		all[i] = sleep(tab, key, parking.Options{Token: parking.ParkToken(i)})
	}
	return all
}

// wait returns how the sleeper's Park ended.
func (s *sleeper) wait(t testing.TB) parking.Result {
	t.Helper()
	select {
	case <-s.done:
		return s.result
	case <-time.After(patience):
		t.Fatalf("still parked after %v", patience)
		panic("unreachable")
	}
}

// asleep reports whether the sleeper has not been woken.
func (s *sleeper) asleep() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// audit checks the table and the number of goroutines parked in it.
func audit(t testing.TB, tab *parking.Table, waiting int) {
	t.Helper()
	got, err := tab.Audit()
	if err != nil {
		t.Fatal(err)
	}
	if got != waiting {
		t.Fatalf("%d goroutines are queued, not %d", got, waiting)
	}
}

// wakeAllInOrder wakes one at a time and checks that each is the next.
func wakeAllInOrder(t testing.TB, tab *parking.Table, key parking.Key, order []*sleeper) {
	t.Helper()
	for i, s := range order {
		token := parking.UnparkToken(i + 1)
		r := tab.UnparkOne(key, func(parking.UnparkResult) parking.UnparkToken { return token })
		if r.Unparked != 1 || r.More != (i < len(order)-1) {
			t.Fatalf("waking number %d of %d: %+v", i, len(order), r)
		}
		if got := s.wait(t); got.Outcome != parking.Unparked || got.Token != token || got.More != r.More {
			t.Fatalf("number %d of %d woke with %+v, token %d expected", i, len(order), got, token)
		}
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// concurrently runs f in n goroutines and waits for them.
func concurrently(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// yieldOrSleep gives other goroutines, and other processes, a chance.
func yieldOrSleep() { time.Sleep(10 * time.Microsecond) }

// child runs this test binary again.
func child(t testing.TB, env string, args ...string) (output string, err error) {
	return childWith(t, []string{env}, args...)
}

func childWith(t testing.TB, env []string, args ...string) (output string, err error) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := append(strings.Fields(os.Getenv("HQSYNC_EXEC")), exe)
	cmd := exec.Command(command[0], append(command[1:], args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Skipf("cannot start a child, HQSYNC_EXEC must name the emulator: %v", err)
	}
	return string(out), err
}
