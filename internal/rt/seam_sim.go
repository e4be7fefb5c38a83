//go:build sim

package rt

import "github.com/hqsync/hqsync/internal/sim"

// A simulated thread gets the simulator's scheduler, clock and luck, any other
// goroutine the real ones.
type atomicUint32 = sim.Uint32

// A Parker in a run is the simulator's, each of whose calls is one step: the
// machine has programs of its own, and the programs of other packages become
// small enough.
type Parker struct {
	machine
	model sim.Parker
}

// Prepare begins a wait and returns the ticket that Kick takes.
func (p *Parker) Prepare() (ticket uint32) {
	if sim.Running() {
		return p.model.Prepare()
	}
	return p.machine.Prepare()
}

// Park sleeps until Unpark or Kick.
func (p *Parker) Park(reason Reason, skip int) Wake {
	if !sim.Running() {
		return p.machine.Park(reason, skip+1)
	}
	if p.model.Park(reason.String()) == sim.Kicked {
		return Kicked
	}
	return Signalled
}

// Unpark ends the wait.
func (p *Parker) Unpark(skip int) {
	if sim.Running() {
		p.model.Unpark()
	} else {
		p.machine.Unpark(skip + 1)
	}
}

// Kick wakes the wait that ticket stands for without ending it.
func (p *Parker) Kick(ticket uint32) {
	if sim.Running() {
		p.model.Kick(ticket)
	} else {
		p.machine.Kick(ticket)
	}
}

// Rearm goes back to waiting after Kicked.
func (p *Parker) Rearm() {
	if sim.Running() {
		p.model.Rearm()
	} else {
		p.machine.Rearm()
	}
}

// Leave ends a wait that the caller itself has unlinked.
func (p *Parker) Leave() {
	if sim.Running() {
		p.model.Leave()
	} else {
		p.machine.Leave()
	}
}

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

func (p *machine) suspend(reason Reason, skip int) {
	if !sim.Running() {
		p.realSuspend(reason, skip+1)
		return
	}
	s := p.state.Load()
	if s&stateMask == queued && p.state.CompareAndSwap(s, s&^stateMask|parked) { // T2
		p.sleep.thread.Acquire()
	}
}

func (p *machine) resume(skip int) {
	if sim.Running() {
		p.sleep.thread.Release()
	} else {
		p.realResume(skip + 1)
	}
}
