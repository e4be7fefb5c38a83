package sync2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/sync2"
)

// tune puts t in force until the test ends.
func tune(t *testing.T, change func(*sync2.Tunables)) {
	t.Helper()
	before := sync2.CurrentTunables()
	t.Cleanup(func() {
		if err := sync2.SetTunables(before); err != nil {
			t.Error(err)
		}
	})
	after := before
	change(&after)
	if err := sync2.SetTunables(after); err != nil {
		t.Fatal(err)
	}
}

func TestSetTunables_IsInForce(t *testing.T) {
	tune(t, func(to *sync2.Tunables) { to.Slice, to.Spin = 50*time.Microsecond, 0 })
	if got := sync2.CurrentTunables(); got.Slice != 50*time.Microsecond || got.Spin != 0 {
		t.Errorf("CurrentTunables() = %+v", got)
	}
}

func TestSetTunables_NamesTheBadValueAndChangesNothing(t *testing.T) {
	before := sync2.CurrentTunables()
	for _, c := range []struct {
		change func(*sync2.Tunables)
		want   string
	}{
		{func(to *sync2.Tunables) { to.Slice = 0 }, "sync2: Tunables.Slice cannot be 0s; allowed: a duration such as 50us, from 1us to 1s"},
		{func(to *sync2.Tunables) { to.Slice = 999 }, "sync2: Tunables.Slice cannot be 999ns; allowed: "},
		{func(to *sync2.Tunables) { to.Slice = time.Second + 1 }, "sync2: Tunables.Slice cannot be 1.000000001s; allowed: "},
		{func(to *sync2.Tunables) { to.Spin = -1 }, "sync2: Tunables.Spin cannot be -1ns; allowed: a duration such as 5us, from 0 to 1s"},
		{func(to *sync2.Tunables) { to.Spin = time.Hour }, "sync2: Tunables.Spin cannot be 1h0m0s; allowed: "},
	} {
		after := before
		after.Slice, after.Spin = 2*time.Millisecond, time.Microsecond
		c.change(&after)
		if err := sync2.SetTunables(after); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("SetTunables(%+v) = %v, want %q", after, err, c.want)
		}
		if now := sync2.CurrentTunables(); now != before {
			t.Fatalf("an error left %+v, before it was %+v", now, before)
		}
	}
}

// TestSetTunables_Asymmetric: what the process cannot do is an error, what it can do works on a mutex in use.
func TestSetTunables_Asymmetric(t *testing.T) {
	before := sync2.CurrentTunables()
	after := before
	after.Asymmetric = !before.Asymmetric
	err := sync2.SetTunables(after)
	if err != nil {
		want := fmt.Sprintf("sync2: Tunables.Asymmetric cannot be %t in this process; allowed: %t", after.Asymmetric, before.Asymmetric)
		if err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if now := sync2.CurrentTunables(); now != before {
			t.Errorf("an error left %+v, before it was %+v", now, before)
		}
		t.Skipf("this build unlocks in one way only (asymmetric: %t)", before.Asymmetric)
	}
	defer func() {
		if err := sync2.SetTunables(before); err != nil {
			t.Error(err)
		}
	}()

	var m sync2.Mutex
	var wg sync2.WaitGroup
	counts := [4]int{}
	total, stop := 0, time.Now().Add(50*time.Millisecond)
	for i := range counts {
		wg.Go(func() {
			for time.Now().Before(stop) {
				m.Lock()
				total++
				m.Unlock()
				counts[i]++
			}
		})
	}
	for time.Now().Before(stop) {
		for _, to := range []sync2.Tunables{before, after} {
			if err := sync2.SetTunables(to); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	wg.Wait()
	if sum := counts[0] + counts[1] + counts[2] + counts[3]; sum != total {
		t.Errorf("%d sections, %d counted under the mutex", sum, total)
	}
}

var printTunables = child("PrintTunables", func(subject) {
	now := sync2.CurrentTunables()
	fmt.Print(now.Slice, " ", now.Spin, " ", now.Asymmetric)
})

func TestTunables_ComeFromTheEnvironment(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", "50µs 6µs "},
		{"slice=50us,spin=0,asymmetric=0", "50µs 0s "},
		{"slice=1ns,spin=7us", "50µs 7µs "}, // what is not allowed is not obeyed
	} {
		t.Run(c.env, func(t *testing.T) {
			r := startChild(t, ours, printTunables, time.Minute, "SYNC2="+c.env)
			if r.exit != 0 || !strings.HasPrefix(r.stdout, c.want) {
				t.Errorf("want %q: %v", c.want, r)
			}
		})
	}
}
