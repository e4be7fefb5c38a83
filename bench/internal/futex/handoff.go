package futex

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// A HandOff is the lock that parking.Table makes easy: Unlock gives it to who has waited the longest.
type HandOff struct {
	word  uint32 // free, held, or held with goroutines that may be queued
	table *parking.Table
}

const (
	free = iota
	held
	heldQueued
)

// NewHandOff returns a free lock, whose goroutines park in a table of their own.
func NewHandOff() *HandOff { return &HandOff{table: new(parking.Table)} }

func (l *HandOff) key() parking.Key { return parking.Key{Addr: parking.AddrOf(&l.word)} }

// Lock locks l.
func (l *HandOff) Lock() {
	for !atomic.CompareAndSwapUint32(&l.word, free, held) {
		atomic.CompareAndSwapUint32(&l.word, held, heldQueued)
		queued := func() bool { return atomic.LoadUint32(&l.word) == heldQueued }
		if r := l.table.Park(l.key(), queued, nil, nil, &parking.Options{Reason: parking.ReasonMutexLock, RaceEdge: true}); r.Outcome == parking.Unparked {
			return // l is this goroutine's
		}
	}
}

// Unlock unlocks l, or locks it for the next.
func (l *HandOff) Unlock() {
	if atomic.CompareAndSwapUint32(&l.word, held, free) {
		return
	}
	if race.Enabled {
		atomic.AddUint32(&l.word, 0) // the detector is blind to what a callback stores: this is the release
	}
	l.table.UnparkOne(l.key(), func(r parking.UnparkResult) parking.UnparkToken {
		switch {
		case r.Unparked == 0:
			atomic.StoreUint32(&l.word, free)
		case !r.More:
			atomic.StoreUint32(&l.word, held)
		}
		return 0
	})
}

// Closed is a closed loop of g goroutines with so many steps of work inside and outside the section. An operation is
// one section.
func Closed(l sync.Locker, g, in, out int) harness.Job {
	return closed(g, in, out, func() (lock, unlock, leave func()) { return l.Lock, l.Unlock, func() {} })
}

// ClosedPI is Closed with the kernel's lock, each goroutine on a thread of its own.
func ClosedPI(g, in, out int) harness.Job {
	l := new(PI)
	return closed(g, in, out, func() (lock, unlock, leave func()) {
		runtime.LockOSThread()
		tid := ThreadID()
		return func() { l.Lock(tid) }, func() { l.Unlock(tid) }, runtime.UnlockOSThread
	})
}

func closed(g, in, out int, enter func() (lock, unlock, leave func())) harness.Job {
	var shared struct {
		_    harness.Pad
		data uint64
		_    harness.Pad
	}
	shared.data = harness.Seed(g)
	return harness.Job{
		Workers: g,
		Loop: func(id int, m *harness.Meter) (t harness.Tally) {
			lock, unlock, leave := enter()
			defer leave()
			t.Sink = harness.Seed(id)
			for p := m.Phase(); p != harness.Stopped && t.Ops < m.Limit(); t.Ops += uint64(p & 1) {
				lock()
				shared.data = harness.Steps(shared.data, in)
				unlock()
				p = m.Phase()
				t.Sink = harness.Steps(t.Sink, out)
			}
			return t
		},
	}
}
