//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package rt

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"unsafe"
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

//go:norace
func realStorePlain(word *atomicUint32, v uint32) { word.Store(v) }

type realSleep struct{ channelSleep }

//go:norace
func (p *machine) realSuspend(reason Reason, skip int) {
	p.sleep.channelSleep.suspend(&p.state, reason)
}

// Sleeper returns nil: nothing to prefetch is known.
func (p *machine) Sleeper() unsafe.Pointer { return nil }

//go:norace
func (p *machine) realResume(skip int) { p.sleep.channelSleep.resume() }
