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
// own word and sleeps again. Of those of this lock the one that has waited longest
// is called: it is woken, and the others stay asleep in a row behind it. Until it
// has the lock or sleeps again the word says waking and no unlock calls another,
// nor any of those who go to sleep meanwhile: all at once they would tear at the
// word, and most would be late again. When it has the lock it puts the row back, so
// that its unlock calls the next; when its budget is spent first the row goes to
// sleep again with it.

// A sleeper is one sleeping goroutine. It lives on the heap, since the stack of
// a parked goroutine may move.
type sleeper struct {
	parker parker
	lock   uintptr  // address of the Lock, to be compared only
	next   *sleeper // on the stack; immutable once pushed, until taken
	row    *sleeper // asleep behind this one, which has them to itself
	last   *sleeper // of the row, nil if there is none; of no meaning inside a row
	again  bool     // has been on the stack before: comes before those that have not
	called bool     // woken by an unlocker after T13, and owes T19
}

type sleepSlot struct {
	top atomicPointer[sleeper]
	_   [56]byte
}

var slots [sleepSlots]sleepSlot

func (l *Lock) slotOf() *sleepSlot { return &slots[slotNumber(uintptr(unsafe.Pointer(l)))] }

// sleep parks the calling goroutine, which is not pinned, until an unlock wakes it,
// and returns the sleeper that it was, with the row behind it. It may return early.
// was is what the last sleep of the same wait returned, or nil: its row sleeps on
// behind the new one.
//
//go:norace
func (l *Lock) sleep(was *sleeper) *sleeper {
	s := &sleeper{lock: uintptr(unsafe.Pointer(l))}
	if was != nil {
		s.again = true
		if !mutant("hq: who sleeps again forgets the row") {
			s.row, s.last = was.row, was.last
		}
	}
	s.parker.Prepare()
	slot := l.slotOf()
	slot.push(s)
	if was != nil && was.called && !mutant("hq: a called sleeper that is late is never done") {
		l.word.And(^uint32(waking)) // T19: what comes next is the look at the stack
	}
	for {
		w := l.word.Load()
		if w&locked == 0 && !mutant("hq: sleeps though it is free") {
			others, found := slot.take(s.lock, s)
			if found || mutant("hq: leaves though it was taken") {
				s.parker.Leave()
				if !mutant("hq: who leaves by itself forgets the others") {
					s.queue(others)
				}
				return s
			}
			others.wake()
			break // somebody took s off the stack: the signal is coming
		}
		if w&(parked|waking) != 0 || l.word.CompareAndSwap(w, w|parked) { // T12
			break // I5: the next unlock, or the sleeper that has been called, sees to s
		}
	}
	s.parker.Park(rt.ReasonSemacquire, 0)
	return s
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
		l.call(false)
		l.word.And(^uint32(parked))
		return
	}
	if !l.beginWaking() || l.call(true) {
		return
	}
	l.word.And(^uint32(waking)) // T19
	if l.slotOf().top.Load() == nil || mutant("hq: nobody looks who has relied on waking") {
		return
	}
	// Somebody may have relied on waking after the stack was taken. Nobody does from
	// now on, so one more look will do, and whom it wakes owes no T19.
	l.call(false)
}

// beginWaking sets waking instead of parked (T13), unless another unlocker has.
//
//go:norace
func (l *Lock) beginWaking() bool {
	for {
		w := l.word.Load()
		if w&parked == 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w&^parked|waking) {
			return true
		}
	}
}

// call wakes the sleeper of l that has waited longest, with the others for its row,
// and reports whether there is one. That owes T19 if it is told that it was called.
//
//go:norace
func (l *Lock) call(called bool) bool {
	s, _ := l.slotOf().take(uintptr(unsafe.Pointer(l)), nil)
	if s == nil {
		return false
	}
	s.called = called
	s.wake()
	return true
}

// awake is the end of the wait of s, whose goroutine has taken l: those who still
// sleep are left to its unlock.
//
//go:norace
func (l *Lock) awake(s *sleeper) {
	slot := l.slotOf()
	if s.row != nil && !mutant("hq: who takes the lock forgets the row") {
		slot.push(s.dissolve())
	}
	if s.called && !mutant("hq: a called sleeper is never done") {
		l.word.And(^uint32(waking)) // T19
	}
	if slot.top.Load() == nil || mutant("hq: a row is put back in secret") {
		return
	}
	for {
		w := l.word.Load()
		if w&(parked|waking) != 0 || l.word.CompareAndSwap(w, w|parked) { // T12
			return
		}
	}
}

// queue puts t, which may be nil, and its row at the end of that of s.
//
//go:norace
func (s *sleeper) queue(t *sleeper) {
	if t == nil {
		return
	}
	end, last := s.last, t.last
	if end == nil || mutant("hq: one row takes the place of another") {
		end = s
	}
	if last == nil {
		last = t
	}
	end.row, s.last = t, last
}

// dissolve returns the row of s, which is not empty, as one of its first sleeper.
//
//go:norace
func (s *sleeper) dissolve() *sleeper {
	first := s.row
	first.again, first.last = true, nil
	if s.last != first {
		first.last = s.last
	}
	return first
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

// take takes the stack and returns the sleepers of the given lock, but self, as one
// row: those first who have been on the stack before, and those who came early
// before those who came late. It wakes the others, and reports whether self was
// there. Taking all at once is what makes the stack safe from a record that comes
// back to it.
//
//go:norace
func (slot *sleepSlot) take(lock uintptr, self *sleeper) (row *sleeper, found bool) {
	var again, fresh *sleeper
	for s := slot.top.Swap(nil); s != nil; {
		next := s.next // after Unpark s is its owner's again
		switch {
		case s == self:
			found = true
		case s.lock != lock:
			s.wake()
		case s.again:
			s.queue(again)
			again = s
		default:
			s.queue(fresh)
			fresh = s
		}
		s = next
	}
	if again == nil {
		return fresh, found
	}
	again.queue(fresh)
	return again, found
}

// wake lets the goroutine of s, which may be nil, go on.
//
//go:norace
func (s *sleeper) wake() {
	if s != nil {
		s.parker.Unpark(0)
	}
}
