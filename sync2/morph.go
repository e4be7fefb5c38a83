//go:build !sync2_std

package sync2

import (
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// Wait morphing, after Linux and LinuxThreads' successors: a Broadcast moves the
// waiters of a Cond into the queue of the Mutex that they have to lock next,
// instead of waking them all to find it locked. The header of mutex.go has the
// words and invariants.
//
//	M1  Before anybody is moved, tag is set (T12, with fence and look), and under both bucket locks it is still the one
//	    that the mutex's bucket was chosen by (I4).
//	M2  The mutex's bucket counts the waiters before parked is set: an unlocker that sees parked looks for them.
//	M3  If the mutex is locked, parked is set before the locks are dropped and nobody is woken. If it is free, the first
//	    waiter is woken with the duty to wake the others.
//	M4  A broadcaster that owes a wake-up as the setter pays it at the end.

// takeOver moves all who wait on from into m's queue, but for the first if m is
// free, who is woken.
func (m *Mutex) takeOver(from parking.Key) {
	var c contender
	for moved := false; !moved; {
		node := m.tag.Load() & tagNode
		if node == 0 && !mutant("cond: tag not set") {
			m.setTag(&c) // M1
			continue
		}
		if node == 0 {
			node = hereTag()
		}
		if mutant("cond: parked set before the waiters are counted") && m.state.Load()&mutexLocked != 0 {
			m.state.Or(mutexParked)
		}
		table().UnparkRequeue(from, m.key(node), func(waiting int) parking.RequeueOp {
			switch {
			case waiting == 0:
				moved = true
				return parking.RequeueAbort
			case m.tag.Load()&tagNode != node && !mutant("cond: tag not validated") && !mutant("cond: tag not set"): // M1
				return parking.RequeueAbort
			}
			moved = true
			if m.announce() { // M2, M3
				return parking.RequeueAll
			}
			return parking.UnparkOneRequeueRest
		}, func(parking.RequeueOp, parking.UnparkResult) parking.UnparkToken { return wokenPlain })
	}
	if c.duty {
		m.giveUp(&c) // M4
	}
}

// announce sets parked if m is locked, and reports whether it is.
func (m *Mutex) announce() bool {
	for {
		s := m.state.Load()
		if s&mutexLocked == 0 {
			return false
		}
		if s&mutexParked != 0 || mutant("cond: parked set before the waiters are counted") || m.state.CompareAndSwap(s, s|mutexParked) {
			return true
		}
	}
}

// lockWoken locks m after a wait on a Cond that ended with r.
func (m *Mutex) lockWoken(r *parking.Result) {
	if r.Outcome != parking.Unparked || r.Token == wokenByCond {
		m.Lock()
		return
	}
	// Moved, and woken by takeOver or by an unlock of m.
	if race.Enabled {
		raceRead(&m.state)
	}
	c := contender{awake: r.Token != wokenPlain, since: r.Since}
	if c.since == 0 { // woken by takeOver, ahead of those whom it moved
		c.since = nanotime()
	}
	c.duty = r.More && r.Token != handedOff && !mutant("cond: woken waiter forgets its duty")
	if r.Token == handedOff {
		m.settle(&c)
	} else {
		m.contend(&c, nil)
	}
	if c.ticks != 0 {
		blocked(c.ticks, 2)
	}
	if t := m.tag.Load(); t >= tagCalm && t&tagAwake == 0 {
		storePlain(&m.tag, t&tagNode) // T14
	}
	if race.Enabled {
		raceAcquire(m)
	}
}

// lockWoken locks rw for writing after a wait on a Cond that ended with r. Who
// was moved waits for rw.w.
func (rw *RWMutex) lockWoken(r *parking.Result) {
	rw.w.lockWoken(r)
	rw.lockOwned(nil)
}
