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

// A sleep in a run is that of one of the twins, as simPortable says.
type sleep struct {
	realSleep
	channels channelSleep
	parked   uintptr // handle of the thread, for Goready
}

var simPortable bool

type resumeMutex = sim.Mutex

// A oneShot is a channel of one slot, which in a run is a semaphore.
type oneShot struct {
	ch      chan struct{}
	permits *sim.Semaphore
}

func newOneShot() oneShot {
	if sim.Running() {
		return oneShot{permits: new(sim.Semaphore)}
	}
	return oneShot{ch: make(chan struct{}, 1)}
}

func (c oneShot) send() {
	if c.permits != nil {
		c.permits.Release()
	} else {
		c.ch <- struct{}{}
	}
}

func (c oneShot) receive() {
	if c.permits != nil {
		c.permits.Acquire()
	} else {
		<-c.ch
	}
}

func mutant(name string) bool { return sim.Mutant(name) }

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

func storePlain(word *atomicUint32, v uint32) { sim.StorePlain32(word, v) }

func (p *machine) suspend(reason Reason, skip int) {
	switch {
	case !sim.Running():
		p.realSuspend(reason, skip)
	case simPortable:
		p.sleep.channels.suspend(&p.state, reason)
	default:
		sim.Gopark(p.commit, reason.String())
	}
}

// commit does what commit in rt_native_unsafe.go does on g0: store, plain load, CAS.
func (p *machine) commit(g uintptr) bool {
	p.sleep.parked = g
	s := sim.LoadPlain32(&p.state)
	if mutant("rt: parks whatever came") {
		p.state.Store(s&^stateMask | parked)
		return true
	}
	return s&stateMask == queued && p.state.CompareAndSwap(s, s&^stateMask|parked) // T2
}

func (p *machine) resume(skip int) {
	switch {
	case !sim.Running():
		p.realResume(skip + 1)
	case simPortable:
		p.sleep.channels.resume()
	default:
		sim.Goready(p.sleep.parked)
	}
}
