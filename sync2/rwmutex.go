//go:build !sync2_std

// RWMutex: a Mutex among writers and one word that counts readers.
//
// # State word
//
//	bits  name    set by        cleared by    may be stale?
//	0     writer  Lock, after   Unlock        no
//	              w is locked
//	1     -       reserved for per-P reader counters; always 0 here
//	2-31  count   readers       readers       too high for a moment: a reader that meets writer takes itself back
//
// # Transitions (count, writer)
//
//	T1  (n,0) -> (n+1,0)    add  RLock        in
//	T2  (n,1) -> (n+1,1)    add  RLock        not in: T3 follows
//	T3  (n,1) -> (n-1,1)    add  rLockSlow    takes itself back; a departure
//	T4  (n,w) -> (n-1,w)    add  RUnlock      a departure if w
//	T5  (n,0) -> (n,1)      add  Lock         the pending writer; new readers wait from here on
//	T6  (n,1) -> (n,0)      add  Unlock, or a writer that gives up
//	T7  (n,w) -> (n+k,w)    add  release      k parked readers are in, under the bucket lock
//	T8  (0,0) -> (0,1)      CAS  TryLock
//	T9  (n,1) -> (n+1,0)    add  Downgrade
//
// # Invariants
//
//	I1  writer is set or cleared only by the owner of w. So it is clear while nobody owns w.
//	I2  count is never below the number of readers inside.
//	I3  A reader parks only if, under the bucket lock, it sees writer; a writer only if it sees count > 0.
//	I4  A departure that leaves count 0 with writer set looks for a parked writer.
//	I5  A release (T6, T9) looks for parked readers before it unlocks w: those that parked in this writer's time are in
//	    before the next writer sets the bit.
//
// # Progress and fairness
//
// Phase-fair: a pending writer stops new readers, and those that it stopped go
// in before the next writer. Neither side starves.

package sync2

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

const (
	rwWriter = 1 // a writer owns w and is in, or waits for the readers inside. Exact.
	rwReader = 4 // one reader in count

	rwUnusual = rwWriter | -1<<31 // what keeps RUnlock off its fast path: a writer, or a negative count
)

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
	w     Mutex       // writers among themselves
	state atomicInt32 // above
	sleep uint32      // its address is what the writer parks on; readers park on state's
	_     [2]uint32   // for per-P reader counters
}

// RLock locks rw for reading. It must not be used for recursive read locking.
func (rw *RWMutex) RLock() {
	if race.Enabled {
		raceRead(&rw.sleep)
	}
	if rw.state.Add(rwReader)&rwWriter != 0 { // T1, T2
		rw.rLockSlow(nil)
	}
	if race.Enabled {
		raceAcquire(&rw.state)
	}
}

// TryRLock tries to lock rw for reading and reports whether it succeeded.
func (rw *RWMutex) TryRLock() bool {
	if race.Enabled {
		raceRead(&rw.sleep)
	}
	for s := rw.state.Load(); s&rwWriter == 0; s = rw.state.Load() {
		if rw.state.CompareAndSwap(s, s+rwReader) { // T1
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
		raceRead(&rw.sleep)
	}
	if rw.state.Add(rwReader)&rwWriter != 0 && !rw.rLockSlow(l) { // T1, T2
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
		raceRead(&rw.sleep)
		raceReleaseMerge(&rw.sleep)
	}
	if s := rw.state.Add(-rwReader); s&rwUnusual != 0 { // T4
		rw.rUnlockSlow(s)
	}
}

// rLockSlow runs after T2: takes itself back and waits for the writer.
func (rw *RWMutex) rLockSlow(l *limit) bool {
	var since int64
	ok := rw.waitToRead(l, &since)
	if since != 0 {
		blocked(since, 1)
	}
	return ok
}

func (rw *RWMutex) waitToRead(l *limit, since *int64) bool {
	opts := parking.Options{Reason: parking.ReasonRWMutexRLock, Skip: 3}
	l.apply(&opts)
	stopped := func() bool { return rw.state.Load()&rwWriter != 0 } // I3
	for {
		if s := rw.state.Add(-rwReader); s&rwWriter != 0 { // T3
			rw.depart(s, 3) // I4
			if *since == 0 {
				*since = cputicks()
			}
			switch table().Park(keyOf(&rw.state), stopped, nil, nil, &opts).Outcome {
			case parking.Unparked:
				return true // T7 has counted this reader
			case parking.TimedOut, parking.Canceled:
				return false
			}
		}
		if rw.state.Add(rwReader)&rwWriter == 0 { // T1, T2
			return true
		}
	}
}

func (rw *RWMutex) rUnlockSlow(s int32) {
	if s < 0 {
		fatal("sync: RUnlock of unlocked RWMutex")
	}
	charge(rw.depart(s, 2), 1)
}

// depart wakes the writer if the departure that left s was the last (I4). It
// returns the delay to charge to the reader. The reader's method is skip
// frames above.
func (rw *RWMutex) depart(s int32, skip int) (delay int64) {
	if s/rwReader == 0 {
		delay = table().UnparkOneFor(skip+1, keyOf(&rw.sleep), nil).Delay
	}
	return delay
}

// Lock locks rw for writing.
func (rw *RWMutex) Lock() {
	if race.Enabled {
		raceRead(&rw.sleep)
	}
	rw.w.Lock()
	if rw.state.Add(rwWriter) != rwWriter { // T5
		rw.lockSlow(nil)
	}
	if race.Enabled {
		raceAcquire(&rw.state)
		raceAcquire(&rw.sleep)
	}
}

// TryLock tries to lock rw for writing and reports whether it succeeded.
func (rw *RWMutex) TryLock() bool {
	if race.Enabled {
		raceRead(&rw.sleep)
	}
	if !rw.w.TryLock() {
		return false
	}
	if !rw.state.CompareAndSwap(0, rwWriter) { // T8
		rw.w.Unlock()
		return false
	}
	if race.Enabled {
		raceAcquire(&rw.state)
		raceAcquire(&rw.sleep)
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
		raceRead(&rw.sleep)
	}
	if !rw.w.lockWithin(l) {
		return false
	}
	if rw.state.Add(rwWriter) != rwWriter && !rw.lockSlow(l) { // T5
		return false
	}
	if race.Enabled {
		raceAcquire(&rw.state)
		raceAcquire(&rw.sleep)
	}
	return true
}

// lockSlow waits, as the pending writer, for the readers inside to leave. If it
// reaches the limit it gives rw up.
func (rw *RWMutex) lockSlow(l *limit) bool {
	since := cputicks()
	ok := rw.waitToWrite(l)
	blocked(since, 1)
	return ok
}

func (rw *RWMutex) waitToWrite(l *limit) bool {
	opts := parking.Options{Reason: parking.ReasonRWMutexLock, Skip: 3}
	l.apply(&opts)
	occupied := func() bool { return rw.state.Load() != rwWriter } // I3
	for occupied() {
		switch table().Park(keyOf(&rw.sleep), occupied, nil, nil, &opts).Outcome {
		case parking.TimedOut, parking.Canceled:
			rw.release(-rwWriter)
			return false
		}
	}
	return true
}

// Unlock unlocks rw for writing. It is a fatal error if rw is not locked for
// writing.
func (rw *RWMutex) Unlock() {
	if race.Enabled {
		raceRead(&rw.sleep)
		raceRelease(&rw.state)
	}
	charge(rw.release(-rwWriter), 0)
}

// Downgrade turns the caller's write lock into a read lock, with no moment in
// between at which a writer could get in. It is a fatal error if rw is not
// locked for writing.
//
// Downgrade synchronizes before the return of every RLock that it lets in.
func (rw *RWMutex) Downgrade() {
	if race.Enabled {
		raceRead(&rw.sleep)
		raceRelease(&rw.state)
	}
	charge(rw.release(rwReader-rwWriter), 0)
}

// release ends the writer's turn by adding delta to the word (T6, T9), lets the
// readers in who waited for it, then the next writer. It returns the
// delay to charge to the writer.
func (rw *RWMutex) release(delta int32) (delay int64) {
	if s := rw.state.Add(delta); (s-delta)&rwWriter == 0 {
		fatal("sync: Unlock of unlocked RWMutex")
	}
	key := keyOf(&rw.state)
	if table().Waiting(key) { // I5
		delay = table().UnparkAllFor(2, key, func(r parking.UnparkResult) parking.UnparkToken {
			rw.state.Add(int32(r.Unparked) * rwReader) // T7
			return 0
		}).Delay
	}
	rw.w.Unlock()
	return delay
}

// RLocker returns a Locker whose Lock and Unlock call rw.RLock and rw.RUnlock.
func (rw *RWMutex) RLocker() Locker { return (*rlocker)(rw) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }
