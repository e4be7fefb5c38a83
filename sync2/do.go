//go:build !sync2_std

// Mutex.Do: functions of goroutines that spin for a mutex, run by another.
//
// # Background
//
// Flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat combining and the
// synchronization-parallelism tradeoff", SPAA 2010): a thread that cannot have
// the lock publishes what it wants done, and whoever has the lock does it for
// all. The lock's word and the data then stay in one cache, and a thread that
// the operating system has taken off its CPU while it waited is served anyway.
//
// Two things are different here. The functions run on a goroutine made for the
// batch: a function may end its goroutine by runtime.Goexit, which nothing can
// stop, and that must not be a goroutine that has other things to do. Making one
// takes as long as some hand-overs of the mutex, so there is no batch until
// Tunables.Batch requests wait. And a request is made only while its owner
// spins: before it parks it takes the request back and becomes a waiter like any
// other. So nobody is ever woken because of a request that was overlooked, and
// the words of the Mutex mean what they meant without Do.
//
// # Request, in its word of
//
//	nil      idle: its owner's, or in the pool
//	a mutex  pending: whoever holds that mutex may claim it
//	&claimed the function is being run, or about to be
//	&asleep  the same, and the owner is parked, or about to be, on this word
//	&done    the function has ended; how, is in the other fields
//
// # Transitions
//
//	T1  nil -> m                store  publish, once it has a cell
//	T2  m -> &claimed           CAS    the batch, which holds m
//	T3  m -> nil                CAS    withdraw: the owner, which will run the function itself
//	T4  &claimed -> &asleep     CAS    the owner, before it parks
//	T5  either -> &done         swap   the batch; after &asleep it unparks the owner
//	T6  &done -> nil            store  the owner
//
// # Invariants
//
//	I1  A function is run once: T2 and T3 both start from m.
//	I2  T2 by a goroutine that holds m, which holds it while it calls the
//	    function. (The function may give it up and take it back, as Cond.Wait
//	    does.)
//	I3  A pending request has an owner that is awake and looks at m itself, so
//	    that a request which nobody claims delays nobody.
//	I4  A batch is at most one look at each cell, so that it ends however many
//	    goroutines go on asking; then m is unlocked as always, which serves its
//	    waiters.
//	I5  The fields of a request are its owner's but from T2 to T5.
//
// A batch that has read a cell may come late: its owner has taken the request
// back, and made it again or left it to somebody else who did. T2 compares with m,
// so it is then a pending request for m all the same. Hence T1 comes last: a record
// that has been anybody's may be claimed from then on, whatever cell names it.
//
// # Lock order
//
// None: requests are claimed by a goroutine that holds m and needs no other lock.
//
// # Pinned by
//
// TestModelDo, TestMutants (tag sim); do_test.go.

package sync2

import (
	"runtime"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// Do locks m, calls f, and unlocks m, also if f panics or calls runtime.Goexit.
// While other goroutines hold m, f may be called by another goroutine, which
// holds m: where many wait in Do, one runs the functions of them all in a batch,
// and none of them has to lock m. Do returns after f, once for each call of f.
//
// What precedes Do is synchronized before the call of f, and the end of f before
// the return of Do; and f is a section between Lock and Unlock to all others.
//
// A panic of f becomes a panic of Do with the same value, and runtime.Goexit ends
// the goroutine that called Do. If f has run on another goroutine the stack
// of the panic is Do's, that of f is lost; Tunables.Batch = 0 keeps every f on
// the goroutine of its caller. What belongs to a goroutine is in f that of the
// one which runs it: profiler labels, the thread of runtime.LockOSThread. In a
// synctest bubble f always runs on the caller's.
//
// Like Lock, Do deadlocks if the caller holds m, and f may not lock m again. In
// the steady state Do does not allocate.
func (m *Mutex) Do(f func()) {
	if race.Enabled {
		raceRead(&m.state)
	}
	if !m.state.CompareAndSwap(0, mutexLocked) && m.waitToRun(f) { // T1 of Mutex
		return
	}
	if race.Enabled {
		raceAcquire(m)
	}
	defer m.endDo()
	f()
}

// endDo unlocks m, or leaves that to a batch.
func (m *Mutex) endDo() {
	if asksFor(m).waiting.Load() == 0 || !m.startBatch() {
		m.Unlock()
	}
}

// A request is what a goroutine asks the holder of a mutex for.
type request struct {
	of atomicPointer[Mutex] // see above

	// I5
	f     func()
	ended ending
	value any   // that f panicked with
	cell  *cell // that names this request
}

// An ending is how a function ended.
type ending uint8

const (
	exited   ending = iota // by runtime.Goexit
	returned               //
	panicked               //
)

// The values of request.of that are no mutex to lock.
var claimed, asleep, done Mutex

type cell = atomicPointer[request]

// An askSlot has the pending requests of the mutexes that share it by their
// addresses. Sharing makes a batch look at requests in vain, at worst.
type askSlot struct {
	waiting atomicInt32 // how many cells are in use or about to be
	cells   [askCells]cell
}

// waitToRun has f run by whoever holds m and returns true, or locks m. It looks
// at the mutex a few times before it makes a request: a short section is over by
// then, unless there is a crowd.
func (m *Mutex) waitToRun(f func()) (ran bool) {
	round := 0
	for ; round < looksAlone && canSpin(round); round++ {
		pause(lookPauses)
		if m.TryLock() {
			return false
		}
	}
	if round < looksAlone || batchFrom() == 0 || insideBubble() {
		return !m.lockSlow(nil)
	}
	ran, locked := m.ask(f)
	return ran || !locked && !m.lockSlow(nil)
}

// lookPauses is how long a goroutine waits between two looks at the mutex: looking
// more often takes the word's cache line away from the holder.
const lookPauses = 30

// ask has f run by whoever holds m, if that comes to pass while it spins. If not
// it may have locked m.
func (m *Mutex) ask(f func()) (ran, locked bool) {
	slot := asksFor(m)
	r := slot.publish(m, f)
	if r == nil {
		return false, false
	}
	begin := nanotime()
	for round := 0; !locked && patient(round, begin) && r.of.Load() != &done; round++ {
		if locked = m.TryLock(); !locked {
			pause(lookPauses)
		}
	}
	if locked && mutant("do: locked and still asking") {
		return false, true
	}
	if r.withdraw(m) {
		slot.retract(r)
		return false, locked
	}
	if locked {
		m.Unlock() // f had given m up for a while, or was done already
	}
	r.await()
	slot.settle(r)
	return true, false
}

// publish makes a request (T1). It returns nil if no cell is free.
func (s *askSlot) publish(m *Mutex, f func()) *request {
	s.waiting.Add(1)
	for i, first := 0, firstCell(); i < askCells; i++ {
		c := &s.cells[(first+i)%askCells]
		if c.Load() != nil {
			continue
		}
		r := newRequest()
		r.f, r.ended, r.cell = f, exited, c
		if c.CompareAndSwap(nil, r) {
			if race.Enabled {
				raceRelease(r)
			}
			r.of.Store(m) // T1
			return r
		}
		r.f, r.cell = nil, nil
		freeRequest(r)
	}
	s.waiting.Add(-1)
	return nil
}

// withdraw takes a pending request back (T3), unless it is too late.
func (r *request) withdraw(m *Mutex) bool {
	if mutant("do: withdrawn without a look") {
		r.of.Store(nil)
		return true
	}
	return r.of.CompareAndSwap(m, nil)
}

// retract frees a request that has been withdrawn.
func (s *askSlot) retract(r *request) {
	r.cell.Store(nil)
	s.waiting.Add(-1)
	r.f, r.cell = nil, nil
	freeRequest(r)
}

// settle does to the caller what the function of r, which is done, did to the
// goroutine that ran it.
func (s *askSlot) settle(r *request) {
	if race.Enabled {
		raceAcquire(r)
	}
	ended, value := r.ended, r.value
	r.value = nil
	r.of.Store(nil) // T6
	s.retract(r)
	switch ended {
	case panicked:
		panic(value)
	case exited:
		runtime.Goexit()
	}
}

// await waits until the function of r, which somebody has claimed, has ended.
func (r *request) await() {
	if r.of.Load() == &done {
		return
	}
	ticks := cputicks()
	opts := parking.Options{Reason: parking.ReasonMutexLock, Skip: 3}
	validate := func() bool { return r.of.Load() == &asleep || mutant("do: owner sleeps without a look") }
	for r.of.Load() != &done {
		r.of.CompareAndSwap(&claimed, &asleep) // T4
		table().Park(keyOf(&r.of), validate, nil, nil, &opts)
	}
	blocked(ticks, 2)
}

// run calls the function of r, which the caller has claimed.
func (r *request) run() {
	if race.Enabled {
		raceAcquire(r)
	}
	defer r.conclude()
	r.f()
	r.ended = returned
}

// conclude makes known how the function of r ended (T5). It is a deferred call.
func (r *request) conclude() {
	if r.ended != returned && !mutant("do: panic stays here") {
		if v := recover(); v != nil {
			r.ended, r.value = panicked, v
		}
	}
	if race.Enabled {
		raceRelease(r)
	}
	if r.of.Swap(&done) == &asleep && !mutant("do: owner is left asleep") {
		table().UnparkOneFor(3, keyOf(&r.of), nil)
	}
}

// A batch is a goroutine that holds a mutex and runs the requests for it.
type batch struct {
	m    *Mutex
	next int    // cell to look at
	body func() // b.run, made once
}

func makeBatch() *batch {
	b := new(batch)
	b.body = b.run
	return b
}

// startBatch leaves m, which the caller holds, to a batch, if that is worth it.
func (m *Mutex) startBatch() bool {
	from := batchFrom()
	if from == 0 || asksFor(m).waiting.Load() < from || insideBubble() {
		return false
	}
	b := newBatch()
	b.m, b.next = m, 0
	spawn(b.body)
	yield() // to the new goroutine: m is locked until it has run
	return true
}

func (b *batch) run() {
	defer b.end()
	if mutant("do: unlocked too early") {
		b.m.Unlock()
		defer b.m.Lock()
	}
	slot := asksFor(b.m)
	for b.next < askCells { // I4
		r := slot.cells[b.next].Load()
		b.next++
		if r == nil || !r.claim(b.m) {
			continue
		}
		r.run()
		if mutant("do: batch without end") {
			b.next = 0
		}
	}
}

// claim is T2.
func (r *request) claim(m *Mutex) bool {
	switch {
	case mutant("do: claimed without a look"):
		of := r.of.Load()
		r.of.Store(&claimed)
		return of == m
	case mutant("do: request for another mutex"):
		of := r.of.Load()
		return of != nil && of != &done && r.of.CompareAndSwap(of, &claimed)
	}
	return r.of.CompareAndSwap(m, &claimed)
}

// end unlocks the mutex, or leaves it to a new goroutine if a function has
// called runtime.Goexit, which ends this one.
func (b *batch) end() {
	if b.next < askCells {
		if !mutant("do: batch ends with Goexit") {
			spawn(b.body)
		}
		return
	}
	m := b.m
	b.m = nil
	freeBatch(b)
	m.Unlock()
}
