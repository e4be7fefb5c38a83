package peer

import (
	"math"
	"sync/atomic"

	"github.com/hqsync/hqsync/parking"
)

// The locks of this file are the simplest that can be made of a parking.Table. Each leaves out one thing that sync2 does.

// word is free, held, or held with goroutines that may be parked on it.
type word struct {
	state uint32
	table parking.Table
}

const (
	free = iota
	held
	heldParked
)

// lockParked takes the lock as one that may have others parked behind it.
func (w *word) lockParked() {
	for atomic.SwapUint32(&w.state, heldParked) != free {
		// Woken or refused, it looks again.
		_ = w.table.Wait(parking.WordOf(&w.state), heldParked, parking.AllBits, parking.Private, parking.Limit{})
	}
}

// unlock lets anybody have the lock, and wakes up to n.
func (w *word) unlock(n int) {
	if atomic.SwapUint32(&w.state, free) == heldParked {
		_, _ = w.table.Wake(parking.WordOf(&w.state), n, parking.AllBits, parking.Private) // of this word: nothing to refuse
	}
}

// thunder wakes everybody, of whom all but one park again.
type thunder struct{ word }

func (l *thunder) Lock() {
	if !atomic.CompareAndSwapUint32(&l.state, free, held) {
		l.lockParked()
	}
}

func (l *thunder) Unlock() { l.unlock(math.MaxInt) }

// cascade wakes one, who wakes the next: who has parked once takes the lock as if more were parked. Who does not park
// may always go first.
type cascade struct{ word }

func (l *cascade) Lock() {
	if !atomic.CompareAndSwapUint32(&l.state, free, held) {
		l.lockParked()
	}
}

func (l *cascade) Unlock() { l.unlock(1) }
