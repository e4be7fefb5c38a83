package sync2_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/trace"
	"slices"
	"strings"
	"testing"
	"time"
)

const traceEnv = "HQSYNC_TEST_TRACE" // the file for the trace

var traceParts = func() (parts []string) {
	for _, c := range contentions {
		parts = append(parts, child("Trace:"+c.name, func(s subject) {
			f, err := os.Create(os.Getenv(traceEnv))
			if err == nil {
				err = trace.Start(f)
			}
			if err != nil {
				panic(err)
			}
			c.run(s)
			trace.Stop()
			if err := f.Close(); err != nil {
				panic(err)
			}
		}))
	}
	return parts
}()

// TestTraceShowsWaitsAsOfPackageSync compares the reasons and the two innermost frames of the events that block and
// unblock a goroutine.
func TestTraceShowsWaitsAsOfPackageSync(t *testing.T) {
	g := needGo(t)
	if testing.Short() {
		t.Skip("the go command may have to build its trace tool first, which takes long")
	}
	t.Parallel()
	for i, c := range contentions {
		if c.name == "MutexWithManyWaiters" {
			continue // who wakes whom is up to chance
		}
		t.Run(c.name, func(t *testing.T) {
			want := tracedWaits(t, g, control, traceParts[i], c)
			if got := tracedWaits(t, g, ours, traceParts[i], c); flavour.waitReasons && !slices.Equal(got, want) {
				t.Errorf("got\n%v\nwant, as with package sync,\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A traceEvent is a change of a goroutine's state.
type traceEvent struct {
	goroutine, from, to, reason string
	blocked, by                 []string // the stacks of the goroutine and of the one that changed it
}

var (
	transition = regexp.MustCompile(`StateTransition .*GoID=(\d+) (\w+)->(\w+) Reason="(.*)"`)
	traceFrame = regexp.MustCompile(`(?m)^\t(\S+) @ 0x`)
)

// tracedWaits returns a line for each kind of wait of the contention's waiter.
func tracedWaits(t *testing.T, g *goTool, s subject, part string, c contention) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	if r := startChild(t, s, part, time.Minute, traceEnv+"="+file); r.exit != 0 {
		t.Fatal(r)
	}
	r := runCommand(t, 5*time.Minute, childEnviron("GOFLAGS="), "", "go", "tool", "trace", "-d=parsed", file)
	if r.exit != 0 {
		t.Fatalf("go tool trace: %v", r)
	}
	var waits []string
	waiting := map[string]traceEvent{}
	for _, e := range parseTrace(r.stdout) {
		if e.from == "Running" && e.to == "Waiting" && slices.Contains(e.blocked, "github.com/hqsync/hqsync/sync2_test."+c.waiter) &&
			!slices.Contains(e.blocked, "sync.(*Pool).pinSlow") { // a P's first look at a Pool takes a lock of package sync
			waiting[e.goroutine] = e
		}
		w, ok := waiting[e.goroutine]
		if !ok || e.to != "Runnable" {
			continue
		}
		delete(waiting, e.goroutine)
		waits = append(waits, fmt.Sprintf("%s: %v woken by %v", w.reason, top(w.blocked), top(e.by)))
	}
	if len(waits) < len(holds) {
		t.Errorf("%s: found %d waits and their ends in the trace, want at least %d: %q", s.name, len(waits), len(holds), waits)
	}
	slices.Sort(waits)
	return slices.Compact(waits)
}

// top returns the two innermost frames as if those of sync2 were package sync's.
func top(stack []string) (frames []string) {
	for _, f := range topFrames(stack) {
		frames = append(frames, strings.ReplaceAll(f, sync2Path+".", syncPath+"."))
	}
	return frames
}

func parseTrace(text string) (events []traceEvent) {
	for line, rest := text, ""; line != ""; line = rest {
		line, rest, _ = strings.Cut(line, "\nM=")
		m := transition.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		of, by, _ := strings.Cut(line, "\nStack=")
		events = append(events, traceEvent{m[1], m[2], m[3], m[4], tracedFrames(of), tracedFrames(by)})
	}
	return events
}

func tracedFrames(text string) (functions []string) {
	for _, m := range traceFrame.FindAllStringSubmatch(text, -1) {
		functions = append(functions, m[1])
	}
	return functions
}
