//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package rt

import (
	"runtime"
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

//go:linkname realGoyield runtime.goyield
func realGoyield()

//go:linkname realPin runtime.procPin
func realPin() int

//go:linkname realUnpin runtime.procUnpin
func realUnpin()

//go:linkname realNanotime runtime.nanotime
func realNanotime() int64

//go:linkname realCputicks runtime.cputicks
func realCputicks() int64

//go:linkname realCanSpin sync.runtime_canSpin
func realCanSpin(i int) bool

//go:linkname realRandom runtime.cheaprand
func realRandom() uint32

//go:linkname realFatal sync.fatal
func realFatal(s string)

//go:linkname realThrow sync.throw
func realThrow(s string)

//go:linkname blockevent runtime.blockevent
func blockevent(cycles int64, skip int)

// cas is compare-and-swap in assembly, because commit runs on g0: there the
// race detector's version of sync/atomic may not be called.
//
//go:noescape
func cas(p *uint32, old, new uint32) bool

// BlockEvent adds a wait of cycles (a difference of two Cputicks) to the block
// profile, subject to its sampling rate. skip 0 puts the caller of BlockEvent
// on top of the stack.
//
//go:noinline
func BlockEvent(cycles int64, skip int) { blockevent(cycles, skip+profileSkip) }

// profileSkip is the number of frames between the runtime's stack walk and the
// caller of BlockEvent or MutexEvent (TestBlockEventSkip).
const profileSkip = 2

// realStorePlain is a release store that is not ordered before later loads. On amd64 an
// atomic one is a locked instruction. Package asm has the same, and imports this one.
//
//go:norace
func realStorePlain(word *atomicUint32, v uint32) {
	if runtime.GOARCH == "amd64" {
		*(*uint32)(unsafe.Pointer(word)) = v
	} else {
		word.Store(v)
	}
}

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

// realSleep is how a goroutine is suspended: its *g, which commit stores before T2.
type realSleep struct{ g uintptr }

// realSuspend parks the calling goroutine unless p has been signalled or kicked. skip
// is the number of frames above suspend, which calls it. Both are small enough to be
// inlined: each frame less between gopark and the user is one return less that the
// CPU mispredicts, having switched stacks since the call.
//
//go:norace
func (p *machine) realSuspend(reason Reason, skip int) {
	r := &reasonCodes[reason]
	gopark(commit, unsafe.Pointer(p), r.wait, r.trace, skip+2)
}

// commit runs on g0 after the goroutine has been marked as waiting. From T2 on
// another thread may ready it, even before commit returns.
//
//go:nosplit
//go:norace
func commit(g uintptr, lock unsafe.Pointer) bool {
	p := (*machine)(lock)
	p.sleep.g = g
	// Under the race detector the word may not be touched through sync/atomic
	// here. A plain read is enough for the generation: only the owner changes it.
	word := (*uint32)(lock)
	s := *word
	return s&stateMask == queued && cas(word, s, s&^stateMask|parked) // T2
}

// Sleeper returns the address that Unpark of a goroutine which sleeps touches
// first, to be prefetched, or nil. With very many goroutines it is in no cache.
//
//go:norace
func (p *machine) Sleeper() unsafe.Pointer {
	g := *(*unsafe.Pointer)(unsafe.Pointer(&p.sleep.g)) // never freed
	if g == nil {
		return nil
	}
	return unsafe.Add(g, statusOffset)
}

// statusOffset is that of atomicstatus in the runtime's g, on the releases that
// this is built for. If it is wrong the prefetch is useless, and nothing else.
const statusOffset = 0x90

//go:norace
func (p *machine) realResume(skip int) { goready(p.sleep.g, skip+1) }

// commit takes a machine's address for that of its state.
var _ = [1]byte{}[unsafe.Offsetof(machine{}.state)]
