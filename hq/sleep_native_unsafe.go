//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"unsafe"

	"github.com/hqsync/hqsync/internal/rt"
)

// Waiters whose pinned budget is spent sleep here, on stacks that locks share by
// their address. It happens when a thread that held a Lock lost its CPU, or when
// so many wait that the last of them would have to for longer than the budget.
//
// An unlock takes the whole stack. A sleeper of another lock is woken, looks at its
// own word and sleeps again. Of those of this lock the first to come is woken; the
// others stay asleep in a row behind it. When it has the lock it puts the row back,
// so that its unlock wakes the next; when its budget is spent first it wakes the
// next itself. All at once they would tear at the word, and most would be late again.

// A sleeper is one sleeping goroutine. It lives on the heap, since the stack of
// a parked goroutine may move.
type sleeper struct {
	parker parker
	lock   uintptr  // address of the Lock, to be compared only
	next   *sleeper // on the stack; immutable once pushed, until taken
	row    *sleeper // asleep behind this one, which has them to itself
}

type sleepSlot struct {
	top atomicPointer[sleeper]
	_   [56]byte
}

var slots [sleepSlots]sleepSlot

func (l *Lock) slotOf() *sleepSlot { return &slots[slotNumber(uintptr(unsafe.Pointer(l)))] }

// sleep parks the calling goroutine, which is not pinned, until an unlock of l, and
// returns those who sleep behind it. It may return early.
//
//go:norace
func (l *Lock) sleep() (row *sleeper) {
	s := &sleeper{lock: uintptr(unsafe.Pointer(l))}
	s.parker.Prepare()
	slot := l.slotOf()
	slot.push(s)
	for {
		w := l.word.Load()
		if w&locked == 0 && !mutant("hq: sleeps though it is free") {
			if slot.wake(s.lock, s) {
				s.parker.Leave()
				if mutant("hq: who leaves by itself forgets the row") {
					return nil
				}
				return s.row // it may have been in a row, and put back
			}
			if mutant("hq: leaves though it was taken") {
				s.parker.Leave()
				return nil
			}
			break // somebody took s off the stack: the signal is coming
		}
		if w&parked != 0 || l.word.CompareAndSwap(w, w|parked) { // T12
			break // I5: the unlock that ends this locked state sees parked and s
		}
	}
	s.parker.Park(rt.ReasonSemacquire, 0)
	return s.row
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
		l.slotOf().wake(uintptr(unsafe.Pointer(l)), nil)
		l.word.And(^uint32(parked))
		return
	}
	l.word.And(^uint32(parked)) // T13, before the stack is taken: see I5
	l.slotOf().wake(uintptr(unsafe.Pointer(l)), nil)
}

// putBack leaves a row to the next unlock. Its caller holds l.
//
//go:norace
func (l *Lock) putBack(row *sleeper) {
	l.slotOf().push(row)
	if !mutant("hq: a row is put back in secret") {
		l.word.Or(parked) // T12
	}
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

// wake takes the stack and wakes those on it, but of the sleepers of the given lock
// that are without a row only the first to come, with the others for its row. It
// does not wake self, and reports whether that was there. Taking all at once is what
// makes the stack safe from a record that comes back to it.
//
//go:norace
func (slot *sleepSlot) wake(lock uintptr, self *sleeper) (found bool) {
	var first *sleeper
	for s := slot.top.Swap(nil); s != nil; {
		next := s.next // after Unpark s is its owner's again
		switch {
		case s == self:
			found = true
		case s.lock == lock && s.row == nil:
			s.row, first = first, s
		default:
			s.wake()
		}
		s = next
	}
	first.wake()
	return found
}

// wake lets the goroutine of s, which may be nil, go on.
//
//go:norace
func (s *sleeper) wake() {
	if s != nil {
		s.parker.Unpark(0)
	}
}
