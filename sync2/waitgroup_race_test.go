//go:build race && !sync2_std && !sim

package sync2

import (
	"sync"
	"testing"
	"time"
)

// An Add that made the counter 0 and is late sends back those who have begun to wait
// for the next use (T5). Whoever then comes before them must not seem to race with
// the one who was first among them: this test passes if the race detector is silent.
func TestWaitGroup_SentBack_IsNoRace(t *testing.T) {
	for range 300 {
		var wg WaitGroup
		var waiters sync.WaitGroup
		wg.Add(1)
		waiters.Go(wg.Wait)
		for end := time.Now().Add(time.Minute); uint32(wg.state.Load()) != 1; time.Sleep(10 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatal("nobody waits")
			}
		}
		late := make(chan bool)
		for range 3 {
			waiters.Go(func() {
				<-late
				wg.Wait()
			})
		}
		close(late)
		wg.release() // what such an Add does last
		wg.Done()
		waiters.Wait()
		if s := wg.state.Load(); s != 0 {
			t.Fatalf("state %#x at rest", s)
		}
	}
}
