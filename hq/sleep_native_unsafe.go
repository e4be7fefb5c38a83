//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"unsafe"

	"github.com/hqsync/hqsync/internal/rt"
)

// Waiters whose pinned budget is spent sleep here, on stacks that locks share by
// their address. It happens when a thread that held a Lock lost its CPU, so it
// is rare, and an unlock simply wakes the whole stack: a sleeper of another lock
// looks at its own word and sleeps again.

// A sleeper is one sleeping goroutine. It lives on the heap, since the stack of
// a parked goroutine may move.
type sleeper struct {
	parker parker
	next   *sleeper // immutable once pushed, until taken
}

type sleepSlot struct {
	top atomicPointer[sleeper]
	_   [56]byte
}

var slots [sleepSlots]sleepSlot

func (l *Lock) slotOf() *sleepSlot { return &slots[slotNumber(uintptr(unsafe.Pointer(l)))] }

// sleep parks the calling goroutine, which is not pinned, until an unlock of l.
// It may return early.
//
//go:norace
func (l *Lock) sleep() {
	s := new(sleeper)
	s.parker.Prepare()
	slot := l.slotOf()
	slot.push(s)
	for {
		w := l.word.Load()
		if w&locked == 0 && !mutant("hq: sleeps though it is free") {
			if slot.wakeAll(s) {
				s.parker.Leave()
				return
			}
			if mutant("hq: leaves though it was taken") {
				s.parker.Leave()
				return
			}
			break // somebody took s off the stack: the signal is coming
		}
		if w&parked != 0 || l.word.CompareAndSwap(w, w|parked) { // T12
			break // I5: the unlock that ends this locked state sees parked and s
		}
	}
	s.parker.Park(rt.ReasonSemacquire, 0)
}

// unlockSlow runs after T2 left w.
//
//go:noinline
//go:norace
func (l *Lock) unlockSlow(w uint32) {
	if w&locked != 0 {
		rt.Throw("hq: unlock of unlocked lock")
	}
	if mutant("hq: sleepers told before parked is clear") {
		l.slotOf().wakeAll(nil)
		l.word.And(^uint32(parked))
		return
	}
	l.word.And(^uint32(parked)) // T13, before the stack is taken: see I5
	l.slotOf().wakeAll(nil)
}

//go:norace
func (slot *sleepSlot) push(s *sleeper) {
	for {
		top := slot.top.Load()
		s.next = top
		if slot.top.CompareAndSwap(top, s) {
			return
		}
	}
}

// wakeAll takes the stack and wakes everybody on it but self, and reports
// whether self was on it. Taking all at once is what makes the stack safe from
// a record that comes back to it.
//
//go:norace
func (slot *sleepSlot) wakeAll(self *sleeper) (found bool) {
	for s := slot.top.Swap(nil); s != nil; {
		next := s.next // after Unpark s is its owner's again
		if s == self {
			found = true
		} else {
			s.parker.Unpark(0)
		}
		s = next
	}
	return found
}
