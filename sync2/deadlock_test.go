package sync2_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// TestRuntimeSeesThatAllGoroutinesSleep: no helper goroutine, timer or spinning may keep the runtime from noticing a
// deadlock.
func TestRuntimeSeesThatAllGoroutinesSleep(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector the runtime does not look for deadlocks")
	}
	for _, part := range deadlocks {
		t.Run(part, func(t *testing.T) {
			onEach(t, func(t *testing.T, s subject) {
				t.Parallel()
				r := startChild(t, s, part, time.Minute)
				if r.exit != 2 || !strings.HasPrefix(r.stderr, "fatal error: all goroutines are asleep - deadlock!\n") {
					t.Fatalf("want exit status 2 and a deadlock reported: %v", r)
				}
				if !flavour.waitReasons && s.path == sync2Path {
					return
				}
				method := strings.TrimPrefix(part, "Deadlock:")
				for _, g := range locktest.ParseGoroutines(r.stderr) {
					if g.Reason == method {
						return
					}
				}
				t.Errorf("want a goroutine in [%s]: %v", method, r)
			})
		})
	}
}

var deadlocks = func() (parts []string) {
	for _, b := range blockers {
		parts = append(parts, child("Deadlock:"+b.method, func(s subject) {
			block, _ := b.prepare(s)
			used(s)
			block()
		}))
	}
	return parts
}()

// used makes goroutines of the process wait and go on in every way first, so that whatever is started lazily has been.
func used(s subject) {
	wg := s.newWaitGroup()
	for _, b := range blockers {
		block, release := b.prepare(s)
		sleeper := locktest.Start(block)
		if err := sleeper.WaitAsleep(30 * time.Second); err != nil {
			panic(err)
		}
		wg.Go(release)
		<-sleeper.Done()
	}
	wg.Wait()
}
