//go:build sim || !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package rt

// channelSleep is how the portable twin suspends a goroutine: it waits for a
// channel of one slot, or, where package sync's own wait would not count as
// durable in a synctest bubble, for the second Lock of a mutex. There is a new
// one for each wait, because a channel belongs to the bubble that made it.
type channelSleep struct {
	ch oneShot
	mu *resumeMutex // nil: ch is used
}

// suspend sleeps unless the machine with this state has been signalled or kicked.
//
//go:norace
func (c *channelSleep) suspend(state *atomicUint32, reason Reason) {
	s := state.Load()
	if s&stateMask != queued {
		return
	}
	c.renew(reason) // before T2
	mu, ch := c.mu, c.ch
	if !state.CompareAndSwap(s, s&^stateMask|parked) && !mutant("rt: sleeps without having parked") { // T2
		return
	}
	if mu != nil {
		mu.Lock()
	} else {
		ch.receive()
	}
}

//go:norace
func (c *channelSleep) renew(reason Reason) {
	switch reason {
	case ReasonMutexLock, ReasonRWMutexRLock, ReasonRWMutexLock:
		c.ch, c.mu = oneShot{}, new(resumeMutex)
		c.mu.Lock()
	default:
		c.ch, c.mu = newOneShot(), nil
	}
}

//go:norace
func (c *channelSleep) resume() {
	if mu := c.mu; mu != nil {
		mu.Unlock()
	} else {
		c.ch.send()
	}
}
