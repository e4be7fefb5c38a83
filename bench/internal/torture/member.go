package torture

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
)

// A member is one goroutine of a crew, or a chain of them: now and then it goes on in a fresh one.
type member struct {
	s    *session
	id   int32 // from 1
	kind string
	crew int // members that share the lock
	turn func(m *member)
	luck *rand.Rand

	// Only the member writes these, the watchdog and the statistics read them.
	_        harness.Pad
	turns    atomic.Uint64
	acquired atomic.Uint64
	gaveUp   atomic.Uint64
	resting  atomic.Bool
	_        harness.Pad
}

// The odds of what is not of locktorture: a fresh goroutine has the smallest stack, which then grows in the lock, and a
// deep one shrinks while its goroutine is parked.
const (
	freshOdds = 4096
	deepOdds  = 64
	deepest   = 48 // frames of half a KiB and more
)

// tickOdds are locktorture's that a member sleeps for a tick between two turns.
const tickOdds = 1 << 20

func (m *member) live() {
	for m.pass() {
		if m.oneIn(deepOdds) {
			deep(m.luck.IntN(deepest), func() { m.turn(m) })
		} else {
			m.turn(m)
		}
		m.turns.Add(1)
		if m.oneIn(tickOdds) {
			time.Sleep(time.Millisecond)
		}
		if m.oneIn(freshOdds) {
			go m.live()
			return
		}
	}
	m.s.alive.Done()
}

// deep calls f with that many frames on the stack.
//
//go:noinline
func deep(frames int, f func()) {
	var frame [512]byte
	if frames == 0 {
		f()
	} else {
		deep(frames-1, f)
	}
	runtime.KeepAlive(&frame)
}

// pass waits before a gate that is shut. It returns false when the member is to go: at the end, or after a failure, when
// nothing that the locks protect can be relied upon.
func (m *member) pass() bool {
	g := &m.s.gate
	if !g.shut.Load() {
		return !g.dismissed.Load()
	}
	m.resting.Store(true)
	<-*g.opened.Load()
	m.resting.Store(false)
	return !g.dismissed.Load()
}

func (m *member) oneIn(n int) bool { return m.luck.IntN(n) == 0 }

// longHold is locktorture's longest hold.
const longHold = 100 * time.Millisecond

// hold spends time inside a section as locktorture does: seldom very long, sometimes a little, now and then
// without the CPU. The long ones are half at work and half asleep. short is 2 µs for writers, 10 µs for readers.
func (m *member) hold(short time.Duration) {
	n := m.crew
	if m.oneIn(n * 2000 * int(longHold/time.Millisecond)) {
		if m.oneIn(2) {
			work(longHold)
		} else {
			time.Sleep(longHold)
		}
	}
	if m.oneIn(n * 200 * 2) {
		work(short)
	}
	if m.oneIn(n * 20000) {
		runtime.Gosched()
	}
}

// work keeps the CPU busy for a time.
func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// patience is how long a member waits that does not wait for ever: mostly not long enough.
func (m *member) patience() time.Duration {
	return time.Duration(m.luck.ExpFloat64() * float64(200*time.Microsecond))
}

// impatient calls wait with a context that ends soon: after a time, or by a goroutine that starts now.
func (m *member) impatient(wait func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if m.oneIn(2) {
		go cancel()
	} else {
		timer := time.AfterFunc(m.patience(), cancel)
		defer timer.Stop()
	}
	return wait(ctx)
}

// A gate stops all members where they hold nothing.
type gate struct {
	shut, dismissed atomic.Bool
	opened          atomic.Pointer[chan struct{}] // closed when the gate opens
}

func (g *gate) close() {
	opened := make(chan struct{})
	g.opened.Store(&opened)
	g.shut.Store(true)
}

func (g *gate) open() {
	g.shut.Store(false)
	close(*g.opened.Load())
}

// dismiss lets go those who wait at the gate, which is shut.
func (g *gate) dismiss() {
	g.dismissed.Store(true)
	close(*g.opened.Load())
}
