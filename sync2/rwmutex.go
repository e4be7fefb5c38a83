//go:build !sync2_std

// RWMutex: a Mutex among writers, and readers counted in one word or, if they
// come from several Ps, in one counter for each P.
//
// # Background
//
// Phase-fair, after Brandenburg and Anderson. The counters are those of a
// big-reader lock, which BRAVO (Dice and Kogan, 2019) takes away while writers
// keep coming. They need no token that tells RUnlock where RLock was: only the
// sum counts, so a reader may leave on another P, or in another goroutine.
//
// # State word
//
//	bits  name     set by            cleared by       may be stale?
//	0     writer   Lock, after w is  Unlock, or who   no
//	               locked            gives up
//	1     counted  a reader, while   a writer that    no: readers use their P's counter, and may also use count
//	               writer is clear   had rw for
//	               (grow)            itself
//	2-31  count    readers           readers,         signed. Too high for a moment: a reader that meets writer takes
//	                                 release          itself back
//
// counters.sum is the sum over the Ps, and what release has moved there.
//
// # Transitions (count, counted, writer)
//
//	T1  (n,c,0) -> (n+1,c,0)  CAS, add  RLock      in
//	T2  (n,c,1) -> (n+1,c,1)  add       RLock      not in: T3 follows
//	T3  (n,c,w) -> (n-1,c,w)  add       RLock      takes itself back; a departure if w
//	T4  (n,c,w) -> (n-1,c,w)  CAS, add  RUnlock    a departure if w
//	T5  (n,c,0) -> (n,c,1)    add       Lock       the pending writer; new readers wait from here on
//	T6  (n,c,1) -> (n-k,c',0) add       release    k moves to the counters; c' = 0 if the writer had rw for itself
//	T7  (n,c,w) -> (n+k,c,w)  add       release    k parked readers are in, under the bucket lock
//	T8  (0,0,0) -> (0,0,1)    CAS       TryLock
//	T9  as T6, n-k+1          add       Downgrade
//	T10 (n,0,0) -> (n,1,0)    CAS       grow
//
// and on a counter, by whoever is pinned to its P:
//
//	C1  n -> n+1  RLock    in if state is then counted and not writer, else C2 follows at once
//	C2  n -> n-1  RLock    takes itself back; late if it then sees writer
//	C3  n -> n-1  RUnlock  late if it then sees writer
//
// # Invariants
//
//	I1  writer is set or cleared only by the owner of w. So it is clear while nobody owns w.
//	I2  count + sum is never below the number of readers inside, and equal to it but for readers that take themselves
//	    back. What a writer sums up after its fence can only be too high: a late C1 has its C2 on the same counter.
//	I3  A reader parks only if, under the bucket lock, it sees writer; a writer only if it sees count different from
//	    goal, and no late departure since it summed.
//	I4  Who has departed by T3 or T4 and then sees writer, and count at what goal says, looks for a parked writer; so does
//	    every late departure. A count above goal has somebody else who is yet to depart. Only the writer sums.
//	I5  A release (T6, T9) looks for parked readers before it unlocks w: those that parked in this writer's time are in
//	    before the next writer sets the bit.
//	I6  counted clear and writer clear => sum is 0, but for readers that take themselves back.
//
// # Ordering
//
//	site          needs                              uses                  pairs with
//	C1, C2, C3    before the load of state           plain store and the   T5 before the writer's loads of the counters
//	                                                 writer's HeavyFence,
//	                                                 or an atomic add
//	goal          before the load of count           atomic                T3, T4 before the load of goal
//	late          before the look for a writer       atomic                count raised in Park before I3
//
// # Progress and fairness
//
// Phase-fair: a pending writer stops new readers, and those that it stopped go
// in before the next writer. Neither side starves.
//
// # Not guaranteed
//
// That a surplus RUnlock is reported at once while readers are counted by P, or
// while another reader comes: it shows at the latest when a writer sums up, or
// when that reader leaves.

package sync2

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

const (
	rwWriter  = 1 << iota // a writer owns w and is in, or waits for the readers inside. Exact.
	rwCounted             // readers count themselves in rw.counters. Exact; does not change while writer is set.
	rwReader              // one reader in count

	rwUnusual = rwWriter | -1<<31 // what RUnlock has to look into: a writer, or a count below 0
)

// readers returns the count of a state.
func readers(s int32) int64 { return int64(s >> 2) }

// A RWMutex is a reader/writer mutual exclusion lock: held by any number of
// readers or by one writer. The zero value is unlocked. A RWMutex must not be
// copied after first use.
//
// If any goroutine calls [RWMutex.Lock] while the lock is held by readers,
// calls of [RWMutex.RLock] block until that writer has had its turn. So
// recursive read locking can deadlock, as with package sync. A writer's turn
// is followed by that of all readers who waited for it, before the next writer.
//
// In the terminology of the Go memory model, the n'th call to [RWMutex.Unlock]
// synchronizes before the m'th call to Lock returns, for n < m. For any call to
// RLock there is an n such that the n'th call to Unlock synchronizes before it
// returns, and the matching call to [RWMutex.RUnlock] synchronizes before the
// n+1'th call to Lock returns.
type RWMutex struct {
	w        Mutex                   // writers among themselves
	state    atomicInt32             // above; its address is what readers park on
	clashes  atomicUint32            // see grow; its address is what the writer parks on
	counters atomicPointer[counters] // nil until the first T10, never changed again
}

// RLock locks rw for reading. It must not be used for recursive read locking.
func (rw *RWMutex) RLock() {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	if !inWord || rw.state.Add(rwReader)&rwWriter != 0 { // T1, T2
		rw.rLockMore()
	}
	if race.Enabled {
		raceAcquire(&rw.state)
	}
}

// rLockMore goes on for RLock where a look at the word comes first, or where T2 has
// met a writer.
func (rw *RWMutex) rLockMore() {
	in := false
	switch s := rw.state.Load(); {
	case inWord:
		rw.takeBack(2)
	case s&(rwWriter|rwCounted) == rwCounted:
		in = rw.enterCounted(2)
	case s&rwWriter == 0:
		n := rw.state.Add(rwReader) // T1, T2
		in = undisturbed(s, n) || rw.entered(n, 2)
	}
	if !in {
		rw.rLockSlow(nil)
	}
}

// TryRLock tries to lock rw for reading and reports whether it succeeded.
func (rw *RWMutex) TryRLock() bool {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	for s := rw.state.Load(); s&rwWriter == 0; s = rw.state.Load() {
		in := false
		if s&rwCounted != 0 {
			in = rw.enterCounted(1)
		}
		if in || s&rwCounted == 0 && rw.state.CompareAndSwap(s, s+rwReader) { // T1
			if race.Enabled {
				raceAcquire(&rw.state)
			}
			return true
		}
	}
	return false
}

// RLockContext locks rw for reading, or returns ctx's error with rw not locked
// if ctx ends before that. If ctx has ended already it returns the error.
func (rw *RWMutex) RLockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !rw.rLockWithin(until(ctx)) {
		return ctx.Err()
	}
	return nil
}

// TryRLockFor locks rw for reading and returns true, or returns false with rw
// not locked if no writer makes way within d. With d <= 0 it is TryRLock.
func (rw *RWMutex) TryRLockFor(d time.Duration) bool {
	return rw.TryRLock() || d > 0 && rw.rLockWithin(within(d))
}

func (rw *RWMutex) rLockWithin(l *limit) bool {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	if !rw.rLockSlow(l) {
		return false
	}
	if race.Enabled {
		raceAcquire(&rw.state)
	}
	return true
}

// RUnlock undoes a single RLock. It is a fatal error if rw is not locked for
// reading.
func (rw *RWMutex) RUnlock() {
	if race.Enabled {
		raceRead(&rw.clashes)
		raceReleaseMerge(&rw.clashes)
	}
	if !inWord || rw.state.Add(-rwReader)&rwUnusual != 0 { // T4
		rw.rUnlockMore()
	}
}

// rLockSlow locks rw for reading and returns true, or gives up at the limit.
func (rw *RWMutex) rLockSlow(l *limit) bool {
	var since int64
	ok := rw.waitToRead(l, &since)
	if since != 0 {
		blocked(since, 2)
	}
	return ok
}

func (rw *RWMutex) waitToRead(l *limit, since *int64) bool {
	stopped := func() bool { return rw.state.Load()&rwWriter != 0 } // I3
	for looks := 0; ; {
		switch s := rw.state.Load(); {
		case s&rwWriter == 0 && s&rwCounted != 0:
			if rw.enterCounted(4) {
				return true
			}
		case s&rwWriter == 0:
			n := rw.state.Add(rwReader) // T1, T2
			if undisturbed(s, n) || rw.entered(n, 4) {
				return true
			}
		case glance(&looks):
		default:
			if *since == 0 {
				*since = cputicks()
			}
			opts := parking.Options{Reason: parking.ReasonRWMutexRLock, Skip: 4}
			l.apply(&opts)
			switch table().Park(keyOf(&rw.state), stopped, nil, nil, &opts).Outcome {
			case parking.Unparked:
				return true // T7 has counted this reader
			case parking.TimedOut, parking.Canceled:
				return false
			}
			looks = 0
		}
	}
}

// entered reports whether the caller, whose T1 or T2 left s in the word, is in.
// Somebody else changed the word at the same time. RLock is skip frames above.
func (rw *RWMutex) entered(s int32, skip int) bool {
	if s&rwWriter == 0 {
		rw.grow()
		return true
	}
	rw.takeBack(skip + 1)
	return false
}

// takeBack undoes T2. RLock is skip frames above.
func (rw *RWMutex) takeBack(skip int) {
	s := rw.state.Add(-rwReader) // T3
	if s&rwWriter != 0 && !mutant("rwmutex: taking back in the word is no departure") {
		rw.depart(s, skip+1) // I4
	}
}

// rUnlockMore goes on for RUnlock where a look at the word comes first, or where T4
// has left something unusual.
func (rw *RWMutex) rUnlockMore() {
	s := rw.state.Load()
	if !inWord {
		if s&(rwWriter|rwCounted) == rwCounted && rw.leaveCounted() {
			return
		}
		s = rw.state.Add(-rwReader) // T4
	}
	if s&rwCounted == 0 && s < 0 {
		fatal("sync: RUnlock of unlocked RWMutex")
	}
	if s&rwWriter != 0 && !mutant("rwmutex: RUnlock in the word is no departure") {
		charge(rw.depart(s, 2), 1)
	}
}

// depart wakes the writer if the departure that left s in the word was the last
// one (I4). It returns the delay to charge to the reader. The reader's method is
// skip frames above.
//
// A count below goal is no misuse: goal may still be that of the last writer.
func (rw *RWMutex) depart(s int32, skip int) (delay int64) {
	goal := int64(0)
	if s&rwCounted != 0 {
		goal = rw.counters.Load().goal.Load()
	}
	if readers(s) == goal {
		delay = rw.unparkWriter(skip + 1)
	}
	return delay
}

func (rw *RWMutex) unparkWriter(skip int) (delay int64) {
	return table().UnparkOneFor(skip+1, keyOf(&rw.clashes), nil).Delay
}

// Lock locks rw for writing.
func (rw *RWMutex) Lock() {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	rw.w.Lock()
	rw.lockOwned(nil)
}

// lockOwned is Lock for the owner of w.
func (rw *RWMutex) lockOwned(l *limit) bool {
	if s := rw.state.Add(rwWriter); s != rwWriter && !rw.lockSlow(s, l) { // T5
		return false
	}
	if race.Enabled {
		raceAcquire(&rw.state)
		raceAcquire(&rw.clashes)
	}
	return true
}

// TryLock tries to lock rw for writing and reports whether it succeeded.
func (rw *RWMutex) TryLock() bool {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	if !rw.w.TryLock() {
		return false
	}
	if !rw.state.CompareAndSwap(0, rwWriter) && !rw.tryCounted() { // T8
		return false
	}
	if race.Enabled {
		raceAcquire(&rw.state)
		raceAcquire(&rw.clashes)
	}
	return true
}

// LockContext locks rw for writing, or returns ctx's error with rw not locked if
// ctx ends before that. If ctx has ended already it returns the error.
func (rw *RWMutex) LockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !rw.lockWithin(until(ctx)) {
		return ctx.Err()
	}
	return nil
}

// TryLockFor locks rw for writing and returns true, or returns false with rw not
// locked if it does not become available within d. With d <= 0 it is TryLock.
func (rw *RWMutex) TryLockFor(d time.Duration) bool {
	return rw.TryLock() || d > 0 && rw.lockWithin(within(d))
}

func (rw *RWMutex) lockWithin(l *limit) bool {
	if race.Enabled {
		raceRead(&rw.clashes)
	}
	return rw.w.lockWithin(l) && rw.lockOwned(l)
}

// tryCounted is TryLock after w has been locked and T8 has failed. Only readers
// that are counted by P have to be looked for; w is unlocked unless it succeeds.
func (rw *RWMutex) tryCounted() bool {
	if rw.state.Load()&rwCounted == 0 {
		rw.unlockW()
		return false
	}
	if p := rw.pending(rw.state.Add(rwWriter)); !p.vacant() { // T5
		rw.release(-rwWriter, false)
		rw.admitReaders()
		return false
	}
	return true
}

// lockSlow waits, as the pending writer whose T5 left s, for the readers inside
// to leave. If it reaches the limit it gives rw up.
func (rw *RWMutex) lockSlow(s int32, l *limit) bool {
	p := rw.pending(s)
	if p.vacant() {
		return true
	}
	since := cputicks()
	ok := p.wait(l)
	blocked(since, 2)
	return ok
}

// A pendingWriter waits for the readers inside to leave.
type pendingWriter struct {
	*RWMutex
	by   *counters // nil: readers are counted in the word only
	goal int64     // what count must become
	late uint32    // late departures before the last summing up
}

// pending prepares for waiting after T5 left s: from then on a reader who has
// used his counter before he could see writer is in it for this writer to see.
func (rw *RWMutex) pending(s int32) pendingWriter {
	p := pendingWriter{RWMutex: rw}
	if s&rwCounted != 0 {
		p.by = rw.counters.Load()
		p.by.fence()
	}
	return p
}

// vacant reports whether nobody is inside, and if so the writer is.
func (p *pendingWriter) vacant() bool {
	if p.by != nil {
		p.late = p.by.late.Load() // before the sum
		p.goal = -p.by.sum()
		if mutant("rwmutex: late departures looked at after the sum") {
			p.late = p.by.late.Load()
		}
		p.by.goal.Store(p.goal) // before the load of count
	}
	n := readers(p.state.Load())
	if n < p.goal {
		fatal("sync: RUnlock of unlocked RWMutex")
	}
	return n == p.goal
}

// occupied reports whether to sleep. The writer's bucket is locked.
func (p *pendingWriter) occupied() bool { // I3
	if p.by != nil && p.by.late.Load() != p.late {
		return false
	}
	return readers(p.state.Load()) != p.goal || mutant("rwmutex: writer sleeps without a look at count")
}

func (p *pendingWriter) wait(l *limit) bool {
	for looks := 0; !p.vacant(); {
		if glance(&looks) {
			continue
		}
		opts := parking.Options{Reason: parking.ReasonRWMutexLock, Skip: 4}
		l.apply(&opts)
		switch table().Park(keyOf(&p.clashes), p.occupied, nil, nil, &opts).Outcome {
		case parking.TimedOut, parking.Canceled:
			p.release(-rwWriter, false)
			p.admitReaders()
			return false
		}
	}
	return true
}

// Unlock unlocks rw for writing. It is a fatal error if rw is not locked for
// writing.
func (rw *RWMutex) Unlock() {
	if race.Enabled {
		raceRead(&rw.clashes)
		raceRelease(&rw.state)
	}
	rw.release(-rwWriter, true)
	charge(rw.admitReaders(), 0)
}

// Downgrade turns the caller's write lock into a read lock, with no moment in
// between at which a writer could get in. It is a fatal error if rw is not
// locked for writing.
//
// Downgrade synchronizes before the return of every RLock that it lets in.
func (rw *RWMutex) Downgrade() {
	if race.Enabled {
		raceRead(&rw.clashes)
		raceRelease(&rw.state)
	}
	rw.release(rwReader-rwWriter, true)
	charge(rw.admitReaders(), 0)
}

// release ends the writer's turn by adding delta to the word (T6, T9). sole says
// that the writer had rw for itself.
func (rw *RWMutex) release(delta int32, sole bool) {
	switch rw.state.Load() & (rwWriter | rwCounted) {
	case rwWriter:
	case rwWriter | rwCounted:
		delta += rw.counters.Load().settle(sole)
	default:
		fatal("sync: Unlock of unlocked RWMutex")
	}
	rw.state.Add(delta)
}

// admitReaders lets the readers in who waited for the writer that has just
// released rw, then the next writer. It returns the delay to charge to the
// writer.
func (rw *RWMutex) admitReaders() (delay int64) {
	key := keyOf(&rw.state)
	if table().Waiting(key) { // I5
		delay = table().UnparkAllFor(2, key, func(r parking.UnparkResult) parking.UnparkToken {
			rw.state.Add(int32(r.Unparked) * rwReader) // T7
			return 0
		}).Delay
	}
	rw.unlockW()
	return delay
}

// unlockW unlocks w, of which the race detector sees nothing, as with package sync:
// the edges are those of rw, and who has given up or failed draws none.
func (rw *RWMutex) unlockW() {
	race.Disable()
	rw.w.Unlock()
	race.Enable()
}

// RLocker returns a Locker whose Lock and Unlock call rw.RLock and rw.RUnlock.
func (rw *RWMutex) RLocker() Locker { return (*rlocker)(rw) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
