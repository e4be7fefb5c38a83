package rt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// One waiter and one waker, a wake per wait, in every order that the scheduler
// brings about: each wait ends exactly once.
func TestParkerWakePerWait(t *testing.T) {
	const rounds = 20000
	p := new(Parker)
	var ready, done atomic.Uint32
	go func() {
		for i := uint32(1); i <= rounds; i++ {
			for ready.Load() != i {
				runtime.Gosched()
			}
			p.Unpark(0)
		}
	}()
	for i := uint32(1); i <= rounds; i++ {
		p.Prepare()
		ready.Store(i)
		if i%3 == 0 {
			runtime.Gosched() // let the waker come first
		}
		if w := p.Park(ReasonMutexLock, 0); w != Signalled {
			t.Fatalf("round %d: woken by %d", i, w)
		}
		done.Add(1)
	}
	if n := done.Load(); n != rounds {
		t.Fatalf("%d of %d waits ended", n, rounds)
	}
}

func TestKickOfEarlierWait_Ignored(t *testing.T) {
	p := new(Parker)
	old := p.Prepare()
	p.Leave()
	now := p.Prepare()
	if old == now {
		t.Fatal("two waits have the same ticket")
	}
	p.Kick(old)
	time.AfterFunc(10*time.Millisecond, func() { p.Unpark(0) })
	if w := p.Park(ReasonSemacquire, 0); w != Signalled {
		t.Fatal("a stale kick woke a later wait")
	}
}

// Kick races Unpark: the owner that was kicked and finds itself dequeued still
// waits for its signal.
func TestKickRacesUnpark_SignalNeverLost(t *testing.T) {
	p := new(Parker)
	kicks := 0
	for i := range 5000 {
		var wg sync.WaitGroup
		ticket := p.Prepare()
		wg.Add(2)
		go func() { defer wg.Done(); p.Kick(ticket) }()
		go func() { defer wg.Done(); p.Unpark(0) }()
		for p.Park(ReasonSemacquire, 0) == Kicked {
			kicks++
			p.Rearm()
			if i%2 == 0 {
				runtime.Gosched()
			}
		}
		wg.Wait()
	}
	t.Logf("%d of 5000 waits were kicked first", kicks)
}

func TestPinNests(t *testing.T) {
	if !Pinnable {
		t.Skip("this build cannot pin")
	}
	a := Pin()
	b := Pin()
	Unpin()
	c := Pin()
	Unpin()
	Unpin()
	if a != b || b != c {
		t.Fatalf("P changed while pinned: %d %d %d", a, b, c)
	}
	runtime.Gosched() // would be fatal if a pin were left
}

func TestNanotimeAdvances(t *testing.T) {
	a := Nanotime()
	time.Sleep(2 * time.Millisecond)
	if d := Nanotime() - a; d < int64(time.Millisecond) || d > int64(time.Minute) {
		t.Fatalf("2 ms of sleep took %d ns", d)
	}
}
