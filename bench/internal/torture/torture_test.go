package torture

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/race"
)

// sharedBuffer is written by the session and the watchdog.
type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func run(t *testing.T, c Config) (Report, string, string, error) {
	t.Helper()
	var log, dump sharedBuffer
	c.Log, c.Dump = &log, &dump
	r, err := Run(context.Background(), c)
	return r, log.String(), dump.String(), err
}

// TestSoundLocks_Pass repeats a short run until each disturbance has struck in one, and somebody has given up on each kind
// of lock: on a busy machine some are late.
func TestSoundLocks_Pass(t *testing.T) {
	for name, disturbed := range map[string][]string{
		"sync2": {"procs", "gc", "slots", "rest"},
		"sync":  {"procs", "gc", "rest"},
	} {
		procs := runtime.GOMAXPROCS(0)
		seen := map[string]bool{}
		missing := append([]string{"mutex", "rwmutex write", "rwmutex read"}, disturbed...)
		for attempt := 0; attempt < 10 && len(missing) > 0; attempt++ {
			r, log, dump, err := run(t, Config{Locks: name, Duration: 2 * time.Second, Stats: 200 * time.Millisecond, Members: 4, Without: []string{"stop"}})
			if err != nil {
				t.Fatalf("%s: %v\n%s%s", name, err, log, dump)
			}
			for what := range r.Struck {
				seen[what] = true
			}
			for _, k := range r.Kinds {
				if seen[k.Name] = seen[k.Name] || k.GaveUp > 0; k.Total == 0 {
					t.Errorf("%s: %s made no acquisitions\n%s", name, k.Name, log)
				}
			}
			if len(r.Course) == 0 || !strings.Contains(log, "mutex ") {
				t.Errorf("%s: no statistics", name)
			}
			missing = slices.DeleteFunc(missing, func(what string) bool { return seen[what] })
		}
		if len(missing) > 0 {
			t.Errorf("%s: %v never struck or gave up", name, missing)
		}
		if seen["slots"] != (name == "sync2") {
			t.Errorf("%s: slots struck: %v", name, seen["slots"])
		}
		if now := runtime.GOMAXPROCS(0); now != procs {
			t.Errorf("%s: GOMAXPROCS is %d afterwards, was %d", name, now, procs)
		}
	}
}

func TestBrokenLocks_Fail(t *testing.T) {
	for name, reasons := range map[string][]string{
		"busted":    {"exclusion: ", "conservation: "}, // two owners, or what comes of them
		"forgetful": {"progress: "},
	} {
		if name == "busted" && race.Enabled {
			continue // the race detector finds the two owners, and fails the test for it
		}
		begin := time.Now()
		_, log, dump, err := run(t, Config{Locks: name, Duration: time.Minute, Patience: 3 * time.Second, Without: []string{"stop"}})
		if !slices.ContainsFunc(reasons, func(reason string) bool { return err != nil && strings.HasPrefix(err.Error(), reason) }) {
			t.Errorf("%s: %v, want one of %q\n%s", name, err, reasons, log)
		}
		t.Logf("%s failed after %v: %v", name, time.Since(begin).Round(time.Millisecond), err)
		if name == "forgetful" && (!strings.Contains(dump, "goroutine profile") || !strings.Contains(dump, "locktest.(*Model)")) {
			t.Errorf("%s: the dump does not show where everybody is:\n%.2000s", name, dump)
		}
	}
}
