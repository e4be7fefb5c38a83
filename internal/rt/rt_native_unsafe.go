//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package rt

import (
	"sync/atomic"
	"unsafe"
)

// Pinnable reports whether Pin works in this build.
const Pinnable = true

// Pulled from the runtime. "Protected" names carry a comment in the runtime's
// source that forbids changing them; the others may go in any release, which
// TestRuntimeContract finds out. A *g is a uintptr here: it is never freed, and
// nothing of it may be touched.

//go:linkname gopark runtime.gopark
func gopark(unlockf func(g uintptr, lock unsafe.Pointer) bool, lock unsafe.Pointer, reason, traceReason uint8, traceSkip int)

//go:linkname goready runtime.goready
func goready(g uintptr, traceSkip int)

//go:linkname goyield runtime.goyield
func goyield()

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

//go:linkname nanotime runtime.nanotime
func nanotime() int64

//go:linkname cputicks runtime.cputicks
func cputicks() int64

//go:linkname canSpin sync.runtime_canSpin
func canSpin(i int) bool

//go:linkname cheaprand runtime.cheaprand
func cheaprand() uint32

//go:linkname syncFatal sync.fatal
func syncFatal(s string)

//go:linkname syncThrow sync.throw
func syncThrow(s string)

//go:linkname blockevent runtime.blockevent
func blockevent(cycles int64, skip int)

// cas is compare-and-swap in assembly, because commit runs on g0: there the
// race detector's version of sync/atomic may not be called.
//
//go:noescape
func cas(p *uint32, old, new uint32) bool

// Pin forbids preemption of the calling goroutine and returns the number of
// its P, which it keeps until Unpin. Pins nest. It does not stop the operating
// system from taking the thread away.
//
//go:nosplit
func Pin() int { return procPin() }

// Unpin undoes one Pin.
//
//go:nosplit
func Unpin() { procUnpin() }

// Nanotime returns a monotonic time in nanoseconds.
//
//go:nosplit
func Nanotime() int64 { return nanotime() }

// Cputicks returns the unit that block and mutex profiles count in.
func Cputicks() int64 { return cputicks() }

// CanSpin reports whether the runtime thinks that round i (from 0) of spinning
// can help: several Ps, idle work elsewhere, an empty local run queue.
func CanSpin(i int) bool { return canSpin(i) }

// Rand returns 32 cheap random bits.
func Rand() uint32 { return cheaprand() }

// Yield puts the calling goroutine at the tail of the local run queue and runs
// the next one, which is the one most recently readied by this P.
func Yield() { goyield() }

// Fatal ends the process as package sync does after misuse: "fatal error: msg"
// with the caller's stack, exit status 2. It cannot be recovered.
func Fatal(msg string) { syncFatal(msg) }

// Throw ends the process because this module's own state is corrupt. It prints
// the runtime's frames too.
func Throw(msg string) { syncThrow(msg) }

// BlockEvent adds a wait of cycles (a difference of two Cputicks) to the block
// profile, subject to its sampling rate. skip 0 puts the caller of BlockEvent
// on top of the stack.
//
//go:noinline
func BlockEvent(cycles int64, skip int) { blockevent(cycles, skip+profileSkip) }

// profileSkip is the number of frames between the runtime's stack walk and the
// caller of BlockEvent or MutexEvent (TestBlockEventSkip).
const profileSkip = 2

type reasonCode struct{ wait, trace uint8 }

// reasonCodes are the runtime's waitReason and traceBlockReason numbers.
var reasonCodes = [numReasons]reasonCode{
	ReasonSemacquire:           {13, 5},
	ReasonMutexLock:            {22, 5},
	ReasonRWMutexRLock:         {23, 5},
	ReasonRWMutexLock:          {24, 5},
	ReasonCondWait:             {21, 4},
	ReasonWaitGroupWait:        {25, 5},
	ReasonWaitGroupWaitDurable: {45, 5},
}

// A Parker puts one goroutine at a time to sleep. The zero value is ready. It
// must live on the heap and must not be copied while in use.
//
// One wait is: Prepare; make the Parker findable; Park. Whoever unlinks it
// calls Unpark exactly once. Kick may come from anywhere at any time.
type Parker struct {
	state uint32  // see reason.go; atomic
	g     uintptr // *g, written by commit before T2. A g is never freed, so this needs to keep nothing alive.
}

// Prepare begins a wait (T1) and returns the ticket that Kick takes.
//
//go:norace
func (p *Parker) Prepare() (ticket uint32) {
	s := atomic.LoadUint32(&p.state)
	if s&stateMask != idle {
		syncThrow("rt: Prepare of a Parker that is in use")
	}
	atomic.StoreUint32(&p.state, s|queued)
	return s
}

// Park sleeps until Unpark or Kick. After Kicked the caller must find out,
// under the lock that guards its queue, whether it is still queued: if so it
// unlinks itself and calls Leave, else it calls Rearm and parks again. skip is
// the number of frames above the caller that execution traces leave out.
//
//go:norace
func (p *Parker) Park(reason Reason, skip int) Wake {
	r := &reasonCodes[reason]
	for {
		switch s := atomic.LoadUint32(&p.state); s & stateMask {
		case signalled:
			atomic.StoreUint32(&p.state, s&^stateMask+genUnit) // T9
			return Signalled
		case kicked:
			return Kicked
		}
		gopark(commit, unsafe.Pointer(p), r.wait, r.trace, skip+2)
	}
}

// commit runs on g0 after the goroutine has been marked as waiting. From T2 on
// another thread may ready it, even before commit returns.
//
//go:nosplit
//go:norace
func commit(g uintptr, lock unsafe.Pointer) bool {
	p := (*Parker)(lock)
	p.g = g
	// Nobody but the owner moves queued to queued, so a plain read of the
	// generation is enough.
	s := p.state
	return s&stateMask == queued && cas(&p.state, s, s&^stateMask|parked) // T2
}

// Unpark ends the wait. The goroutine becomes runnable next on the caller's P:
// a caller that goes on running keeps it waiting until another P steals it or
// the caller calls Yield.
//
//go:norace
func (p *Parker) Unpark(skip int) {
	for {
		s := atomic.LoadUint32(&p.state)
		switch st := s & stateMask; st {
		case queued, parked, kicked:
			if !atomic.CompareAndSwapUint32(&p.state, s, s&^stateMask|signalled) { // T3, T4, T7
				continue
			}
			if st == parked {
				goready(p.g, skip+2) // I1: p still sleeps, so g is its own
			}
			return
		default:
			syncThrow("rt: Unpark of a Parker that does not wait")
		}
	}
}

// Kick wakes the wait that ticket stands for without ending it, if it has not
// ended yet.
//
//go:norace
func (p *Parker) Kick(ticket uint32) {
	for {
		s := atomic.LoadUint32(&p.state)
		if s&^stateMask != ticket || s&stateMask != queued && s&stateMask != parked {
			return
		}
		if !atomic.CompareAndSwapUint32(&p.state, s, ticket|kicked) { // T5, T6
			continue
		}
		if s&stateMask == parked {
			goready(p.g, 2)
		}
		return
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
			syncThrow("rt: Leave of a Parker that was signalled")
		}
		if atomic.CompareAndSwapUint32(&p.state, s, s&^stateMask+genUnit) {
			return
		}
	}
}
