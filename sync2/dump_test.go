package sync2_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// People and tools search dumps for "[sync.Mutex.Lock]" and for the method above the caller.

func TestGoroutineDumpNamesTheWaitAndTheMethod(t *testing.T) {
	for _, b := range blockers {
		t.Run(b.method, func(t *testing.T) {
			onEach(t, func(t *testing.T, s subject) {
				block, release := b.prepare(s)
				sleeper := locktest.Start(block)
				if err := sleeper.WaitAsleep(time.Minute); err != nil {
					t.Fatal(err)
				}
				reason, stack := sleeper.State()
				release()
				if err := sleeper.WaitEnded(time.Minute); err != nil {
					t.Fatal(err)
				}
				if reason != b.method && (s.path == syncPath || flavour.waitReasons) {
					t.Errorf("got [%s], want [%s]:\n%s", reason, b.method, stack)
				}
				wantMethodAboveCaller(t, framesOf(stack), b.method, "sync2_test.init.")
			})
		})
	}
}

// frameLine matches the line of a dump that has a function's name.
var frameLine = regexp.MustCompile(`^([^\s].*)\([^()]*\)$`)

// framesOf returns the functions of a stack as printed in dumps, the innermost first.
func framesOf(stack string) (functions []string) {
	for line := range strings.Lines(stack) {
		if m := frameLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			functions = append(functions, m[1])
		}
	}
	return functions
}

// methodName matches the functions that a user calls: a method of package sync or of sync2.
var methodName = regexp.MustCompile(`^(?:sync|github\.com/hqsync/hqsync/sync2)\.\(\*(\w+)\)\.(\w+)$`)

// wantMethodAboveCaller wants the frame above the first one that contains caller to be the method, given as "sync.T.M".
func wantMethodAboveCaller(t *testing.T, functions []string, method, caller string) {
	t.Helper()
	for i, f := range functions {
		if !strings.Contains(f, caller) {
			continue
		}
		if i > 0 {
			if m := methodName.FindStringSubmatch(functions[i-1]); m != nil && "sync."+m[1]+"."+m[2] == method {
				return
			}
		}
		break
	}
	t.Errorf("want %s right above the caller, which has %q in its name, got\n%s", method, caller, strings.Join(functions, "\n"))
}
