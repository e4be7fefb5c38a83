package sync2_test

import (
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// The goroutine leak profile lists goroutines that wait for something that nobody can reach any more. It knows the
// runtime's own waits only. A goroutine that waits on a type of sync2 must never be listed while somebody can still wake
// it; that a real leak is not listed either is the price, named in the package's documentation.

const leakProfile = "goroutineleak"

// keepReachable holds what the wanted goroutines wait for.
var keepReachable []any

var leakPart = child("LeakProfile", func(s subject) {
	var wanted []*locktest.Sleeper
	var releases []func()
	for _, b := range blockers {
		block, release := b.prepare(s)
		releases = append(releases, release)
		keepReachable = append(keepReachable, release)
		wanted = append(wanted, locktest.Start(func() { wantedWaiter(block) }))
		forget(s, b)
	}
	for _, w := range wanted {
		if err := w.WaitAsleep(30 * time.Second); err != nil {
			panic(err)
		}
	}
	for range 3 {
		writeLeaks()
	}
	for i, release := range releases {
		release()
		<-wanted[i].Done()
	}
	writeLeaks()
	keepReachable = nil
})

func writeLeaks() {
	if err := pprof.Lookup(leakProfile).WriteTo(os.Stdout, 2); err != nil {
		panic(err)
	}
}

func wantedWaiter(block func())    { block() }
func forgottenWaiter(block func()) { block() }

// forget leaves a goroutine waiting for something that nobody else knows.
//
//go:noinline
func forget(s subject, b blocker) {
	block, _ := b.prepare(s)
	if err := locktest.Start(func() { forgottenWaiter(block) }).WaitAsleep(30 * time.Second); err != nil {
		panic(err)
	}
}

func TestLeakProfileListsNoGoroutineThatCanBeWoken(t *testing.T) {
	if pprof.Lookup(leakProfile) == nil {
		t.Skipf("%s has no goroutine leak profile, unless built with GOEXPERIMENT=goroutineleakprofile", goVersion)
	}
	onEach(t, func(t *testing.T, s subject) {
		r := startChild(t, s, leakPart, time.Minute)
		if r.exit != 0 {
			t.Fatal(r)
		}
		leaked := leakedGoroutines(r.stdout)
		if slices.ContainsFunc(leaked, func(stack string) bool { return strings.Contains(stack, "wantedWaiter") }) {
			t.Errorf("a goroutine that can be woken is listed:\n%s", r.stdout)
		}
		listed := slices.ContainsFunc(leaked, func(stack string) bool { return strings.Contains(stack, "forgottenWaiter") })
		if want := s.path == syncPath || flavour.leaksSeen; listed != want {
			t.Errorf("real leaks are listed: %v, the documentation says %v:\n%s", listed, want, r.stdout)
		}
	})
}

// leakedGoroutines returns the stacks that a profile marks as leaked.
func leakedGoroutines(profile string) (stacks []string) {
	for block := range strings.SplitSeq(profile, "\n\n") {
		if header, stack, _ := strings.Cut(strings.TrimSpace(block), "\n"); strings.Contains(header, "(leaked)") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
