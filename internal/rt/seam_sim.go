//go:build sim

package rt

import "github.com/hqsync/hqsync/internal/sim"

// A simulated thread gets the simulator's scheduler, clock and luck, any other
// goroutine the real ones.
type atomicUint32 = sim.Uint32

type sleep struct {
	realSleep
	thread sim.Semaphore
}

func pin() int {
	if sim.Running() {
		return sim.Pin()
	}
	return realPin()
}

func unpin() {
	if sim.Running() {
		sim.Unpin()
	} else {
		realUnpin()
	}
}

func nanotime() int64 {
	if sim.Running() {
		return sim.Nanotime()
	}
	return realNanotime()
}

// cputicks feeds profiles only: in a run it is a constant and no step.
func cputicks() int64 {
	if sim.Running() {
		return 1
	}
	return realCputicks()
}

// canSpin allows a simulated thread no round or one, in some schedule each: a
// round waits for a change anyway.
func canSpin(i int) bool {
	if sim.Running() {
		return i < 1 && sim.Choose(2) == 1
	}
	return realCanSpin(i)
}

func random() uint32 {
	if sim.Running() {
		return uint32(sim.Rand())
	}
	return realRandom()
}

func goyield() {
	if sim.Running() {
		sim.Yield()
	} else {
		realGoyield()
	}
}

func fatal(msg string) {
	if sim.Running() {
		sim.Fatal(msg)
	}
	realFatal(msg)
}

func throw(msg string) {
	if sim.Running() {
		sim.Failf("%s", msg)
	}
	realThrow(msg)
}

func (p *Parker) suspend(reason Reason, skip int) {
	if !sim.Running() {
		p.realSuspend(reason, skip+1)
		return
	}
	s := p.state.Load()
	if s&stateMask == queued && p.state.CompareAndSwap(s, s&^stateMask|parked) { // T2
		p.sleep.thread.Acquire()
	}
}

func (p *Parker) resume(skip int) {
	if sim.Running() {
		p.sleep.thread.Release()
	} else {
		p.realResume(skip + 1)
	}
}
