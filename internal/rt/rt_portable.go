//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package rt

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pinnable reports whether Pin works in this build.
const Pinnable = false

var start = time.Now()

// Pin does nothing here and returns 0.
func Pin() int { return 0 }

// Unpin does nothing here.
func Unpin() {}

// Nanotime returns a monotonic time in nanoseconds.
func Nanotime() int64 { return int64(time.Since(start)) }

// Cputicks returns nanoseconds here.
func Cputicks() int64 { return Nanotime() }

// CanSpin allows a few rounds where there is another CPU to wait for.
func CanSpin(i int) bool { return i < 4 && runtime.NumCPU() > 1 }

// Rand returns 32 cheap random bits.
func Rand() uint32 { return rand.Uint32() }

// Yield lets other goroutines run.
func Yield() { runtime.Gosched() }

// Fatal ends the process as package sync does after misuse. Package sync's own
// texts come from misusing one of its locks; any other text, which no caller
// uses, from a panic that nobody can recover.
func Fatal(msg string) {
	switch msg {
	case "sync: unlock of unlocked mutex":
		new(sync.Mutex).Unlock()
	case "sync: Unlock of unlocked RWMutex":
		new(sync.RWMutex).Unlock()
	case "sync: RUnlock of unlocked RWMutex":
		new(sync.RWMutex).RUnlock()
	}
	Throw(msg)
}

// Throw ends the process because this module's own state is corrupt.
func Throw(msg string) {
	go panic("fatal error: " + msg)
	select {}
}

// BlockEvent does nothing: the channel that a goroutine parks on here feeds the
// block profile by itself.
func BlockEvent(cycles int64, skip int) {}

// A Parker puts one goroutine at a time to sleep. The zero value is ready. It
// must not be copied while in use.
//
// One wait is: Prepare; make the Parker findable; Park. Whoever unlinks it
// calls Unpark exactly once. Kick may come from anywhere at any time.
//
// The state decides, as in the native twin but for parked, which does not occur
// here; the channel only ends the sleep, and a surplus token in it does no harm.
type Parker struct {
	state uint32        // see reason.go; atomic
	ch    chan struct{} // one slot; a new one for each wait, because a channel belongs to the synctest bubble that made it
}

// Prepare begins a wait (T1) and returns the ticket that Kick takes.
//
//go:norace
func (p *Parker) Prepare() (ticket uint32) {
	s := atomic.LoadUint32(&p.state)
	if s&stateMask != idle {
		Throw("rt: Prepare of a Parker that is in use")
	}
	p.ch = make(chan struct{}, 1)
	atomic.StoreUint32(&p.state, s|queued)
	return s
}

// Park sleeps until Unpark or Kick. After Kicked the caller must find out,
// under the lock that guards its queue, whether it is still queued: if so it
// unlinks itself and calls Leave, else it calls Rearm and parks again.
//
//go:norace
func (p *Parker) Park(reason Reason, skip int) Wake {
	for {
		switch s := atomic.LoadUint32(&p.state); s & stateMask {
		case signalled:
			p.ch = nil
			atomic.StoreUint32(&p.state, s&^stateMask+genUnit) // T9
			return Signalled
		case kicked:
			return Kicked
		}
		<-p.ch
	}
}

// Unpark ends the wait.
//
//go:norace
func (p *Parker) Unpark(skip int) {
	ch := p.ch // before the CAS: after it the Parker is the owner's again (I2)
	for {
		s := atomic.LoadUint32(&p.state)
		if st := s & stateMask; st != queued && st != kicked {
			Throw("rt: Unpark of a Parker that does not wait")
		}
		if atomic.CompareAndSwapUint32(&p.state, s, s&^stateMask|signalled) { // T3, T7
			break
		}
	}
	send(ch)
}

// Kick wakes the wait that ticket stands for without ending it, if it has not
// ended yet.
//
//go:norace
func (p *Parker) Kick(ticket uint32) {
	ch := p.ch                                                               // of this wait if the CAS succeeds: the generation only grows
	if atomic.CompareAndSwapUint32(&p.state, ticket|queued, ticket|kicked) { // T5
		send(ch)
	}
}

// send leaves a token, or finds one there that has not been taken yet.
func send(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Rearm goes back to waiting after Kicked (T8), unless Unpark has come already.
//
//go:norace
func (p *Parker) Rearm() {
	s := atomic.LoadUint32(&p.state)
	if s&stateMask == kicked {
		atomic.CompareAndSwapUint32(&p.state, s, s&^stateMask|queued)
	}
}

// Leave ends a wait that the caller itself has unlinked (T10, T11): nobody
// will call Unpark.
//
//go:norace
func (p *Parker) Leave() {
	for {
		s := atomic.LoadUint32(&p.state)
		if st := s & stateMask; st != kicked && st != queued {
			Throw("rt: Leave of a Parker that was signalled")
		}
		if atomic.CompareAndSwapUint32(&p.state, s, s&^stateMask+genUnit) {
			p.ch = nil
			return
		}
	}
}
