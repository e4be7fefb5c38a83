package rt

// A machine is the state machine of a [Parker], whose contract it has.
type machine struct {
	state atomicUint32
	sleep sleep // how the goroutine is suspended; see the twins
}

// State of a machine: three low bits, and above them the generation, which
// changes with every wait so that a Kick meant for an earlier one misses.
//
//	T1  idle      -> queued     Prepare    owner, before the waiter can be found by others
//	T2  queued    -> parked     suspend    owner; fails after T3 or T5. Native: on g0, inside gopark
//	T3  queued    -> signalled  Unpark     the owner is still running: nothing to resume
//	T4  parked    -> signalled  Unpark     the waker resumes the goroutine
//	T5  queued    -> kicked     Kick       as T3
//	T6  parked    -> kicked     Kick       as T4
//	T7  kicked    -> signalled  Unpark     the owner has been resumed by T6 already, or never slept
//	T8  kicked    -> queued     Rearm      owner found that a waker has dequeued it: the signal is coming
//	T9  signalled -> idle       Park       owner, generation + 1
//	T10 kicked    -> idle       Leave      owner has dequeued itself: nobody else knows the Parker
//	T11 queued    -> idle       Leave      as T10, before it parked
//
// I1 the goroutine is resumed exactly once per transition out of parked.
// I2 after T3, T4 or T7 the waker does not touch the Parker, but to resume a
// goroutine that is parked, hence not using it: the owner may already be in its
// next wait.
// I3 in idle and signalled nobody but the owner writes: T1 and T9 are stores, which
// may stay in the store buffer. T1 has left it when the waiter can be found, as
// whatever makes it so comes later; until T9 has, a Kick misses as it would after.
const (
	idle = iota
	queued
	parked
	signalled
	kicked

	stateBits = 3
	stateMask = 1<<stateBits - 1
	genUnit   = 1 << stateBits
)

// Prepare begins a wait (T1) and returns the ticket that Kick takes.
//
//go:norace
func (p *machine) Prepare() (ticket uint32) {
	s := p.state.Load()
	if s&stateMask != idle {
		throw("rt: Prepare of a Parker that is in use")
	}
	storePlain(&p.state, s|queued)
	return s
}

// Park sleeps until Unpark or Kick. After Kicked the caller must find out,
// under the lock that guards its queue, whether it is still queued: if so it
// unlinks itself and calls Leave, else it calls Rearm and parks again. skip is
// the number of frames above the caller that execution traces leave out.
//
//go:norace
func (p *machine) Park(reason Reason, skip int) Wake {
	for {
		switch s := p.state.Load(); s & stateMask {
		case signalled:
			if mutant("rt: same generation after a signal") {
				s -= genUnit
			}
			storePlain(&p.state, s&^stateMask+genUnit) // T9
			return Signalled
		case kicked:
			return Kicked
		}
		p.suspend(reason, skip+1) // T2, or at once if that fails
	}
}

// Unpark ends the wait. The goroutine becomes runnable next on the caller's P:
// a caller that goes on running keeps it waiting until another P steals it or
// the caller calls Yield.
//
//go:norace
func (p *machine) Unpark(skip int) {
	for {
		s := p.state.Load()
		st := s & stateMask
		if st != queued && st != parked && st != kicked {
			throw("rt: Unpark of a Parker that does not wait")
		}
		if mutant("rt: signal overwrites") && st == queued {
			p.state.Store(s&^stateMask | signalled)
			return
		}
		if p.state.CompareAndSwap(s, s&^stateMask|signalled) { // T3, T4, T7
			if st == parked {
				p.resume(skip + 1) // I1
			}
			return
		}
	}
}

// Kick wakes the wait that ticket stands for without ending it, if it has not
// ended yet.
//
//go:norace
func (p *machine) Kick(ticket uint32) {
	for {
		s := p.state.Load()
		st := s & stateMask
		if mutant("rt: kick of any ticket") {
			ticket = s &^ stateMask
		}
		late := st == signalled && mutant("rt: kick after the signal")
		if s&^stateMask != ticket || st != queued && st != parked && !late {
			return
		}
		if p.state.CompareAndSwap(s, ticket|kicked) { // T5, T6
			if st == parked {
				p.resume(1) // I1
			}
			return
		}
	}
}

// Rearm goes back to waiting after Kicked (T8), unless Unpark has come already.
//
//go:norace
func (p *machine) Rearm() {
	s := p.state.Load()
	if mutant("rt: re-arm overwrites") {
		p.state.Store(s&^stateMask | queued)
		return
	}
	if s&stateMask == kicked {
		p.state.CompareAndSwap(s, s&^stateMask|queued)
	}
}

// Leave ends a wait that the caller itself has unlinked (T10, T11): nobody
// will call Unpark.
//
//go:norace
func (p *machine) Leave() {
	for {
		s := p.state.Load()
		if st := s & stateMask; st != kicked && st != queued {
			throw("rt: Leave of a Parker that was signalled")
		}
		if p.state.CompareAndSwap(s, s&^stateMask+genUnit) {
			return
		}
	}
}
