//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package rt

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// Pinnable reports whether Pin works in this build.
const Pinnable = false

var start = time.Now().Add(-1)

func realPin() int           { return 0 }
func realUnpin()             {}
func realNanotime() int64    { return int64(time.Since(start)) }
func realCputicks() int64    { return realNanotime() }
func realCanSpin(i int) bool { return i < 4 && runtime.NumCPU() > 1 }
func realRandom() uint32     { return rand.Uint32() }
func realGoyield()           { runtime.Gosched() }

// realFatal gets package sync's own texts by misusing one of its locks. No
// caller uses another one.
func realFatal(msg string) {
	switch msg {
	case "sync: unlock of unlocked mutex":
		new(sync.Mutex).Unlock()
	case "sync: Unlock of unlocked RWMutex":
		new(sync.RWMutex).Unlock()
	case "sync: RUnlock of unlocked RWMutex":
		new(sync.RWMutex).RUnlock()
	}
	realThrow(msg)
}

// realThrow panics where nobody can recover it.
func realThrow(msg string) {
	go panic("fatal error: " + msg)
	select {}
}

// BlockEvent does nothing: the channel that a goroutine parks on here feeds the
// block profile by itself.
func BlockEvent(cycles int64, skip int) {}

// realSleep is how a goroutine is suspended: it waits for a channel of one slot,
// or, where package sync's own wait would not count as durable in a synctest
// bubble, for the second Lock of a sync.Mutex. There is a new one for each wait,
// because a channel belongs to the bubble that made it.
type realSleep struct {
	ch chan struct{}
	mu *sync.Mutex
}

// realSuspend sleeps unless p has been signalled or kicked.
//
//go:norace
func (p *machine) realSuspend(reason Reason, skip int) {
	s := p.state.Load()
	if s&stateMask != queued {
		return
	}
	p.sleep.realSleepOn(reason) // before T2
	mu, ch := p.sleep.mu, p.sleep.ch
	if !p.state.CompareAndSwap(s, s&^stateMask|parked) { // T2
		return
	}
	if mu != nil {
		mu.Lock()
	} else {
		<-ch
	}
}

func (s *realSleep) realSleepOn(reason Reason) {
	switch reason {
	case ReasonMutexLock, ReasonRWMutexRLock, ReasonRWMutexLock:
		s.ch, s.mu = nil, new(sync.Mutex)
		s.mu.Lock()
	default:
		s.ch, s.mu = make(chan struct{}, 1), nil
	}
}

//go:norace
func (p *machine) realResume(skip int) {
	if mu := p.sleep.mu; mu != nil {
		mu.Unlock()
	} else {
		p.sleep.ch <- struct{}{}
	}
}
