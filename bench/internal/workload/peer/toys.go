package peer

import (
	"runtime"
	"sync/atomic"
)

// looks is how often a toy looks at its lock before it lets others run: its holder may be one of them.
const looks = 64

// tas is a test-and-set lock: who comes first after an unlock has it.
type tas struct{ held atomic.Bool }

func (l *tas) Lock() {
	for n := 1; l.held.Load() || !l.held.CompareAndSwap(false, true); n++ {
		if n%looks == 0 {
			runtime.Gosched()
		}
	}
}

func (l *tas) Unlock() { l.held.Store(false) }

// ticket serves in the order of arrival, also those who are not running.
type ticket struct{ next, serving atomic.Uint32 }

func (l *ticket) Lock() {
	mine := l.next.Add(1) - 1
	for n := 1; l.serving.Load() != mine; n++ {
		if n%looks == 0 {
			runtime.Gosched()
		}
	}
}

func (l *ticket) Unlock() { l.serving.Add(1) }
