package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// TimedReader are the optional timed forms of the reader side.
type TimedReader interface {
	TryRLockFor(d time.Duration) bool
	RLockContext(ctx context.Context) error
}

// Downgrader is an optional method of a reader-writer lock.
type Downgrader interface {
	// Downgrade turns the caller's exclusive hold into a shared one; no writer gets in between.
	Downgrade()
}

// RWMutexChecks returns the checks of a reader-writer lock. Its writer side is also a Mutex.
func RWMutexChecks() []Check[RWMutex] {
	return []Check[RWMutex]{
		{"TryFormsFollowTheState", 0, tryFormsFollowTheState},
		{"ReadersShare", Blocking, readersShare},
		{"Exclusion", 0, func(o Options, l RWMutex) error { return rwExclusion(o, l, true) }},
		{"ExclusionByTheLockAlone", 0, func(o Options, l RWMutex) error { return rwExclusion(o, l, false) }},
		{"BurstsOfArrivalsAllLeave", 0, rwBursts},
		{"WriterWaitsForTheLastReader", Blocking, writerWaitsForTheLastReader},
		{"AnotherGoroutineMayRUnlock", Blocking | AnyUnlocker, anotherGoroutineMayRUnlock},
		{"WaitingWriterKeepsNewReadersOut", Blocking | WriterPreference, waitingWriterKeepsNewReadersOut},
		{"WaitingReadersGoBeforeTheNextWriter", Blocking | PhaseFair, waitingReadersGoBeforeTheNextWriter},
		{"ReadersDoNotStarveAWriter", Blocking | WriterPreference, readersDoNotStarveAWriter},
		{"WritersDoNotStarveAReader", Blocking | Fair, writersDoNotStarveAReader},
		{"TimedReadersKeepTheirWord", Blocking, timedReadersKeepTheirWord},
		{"WriterThatGivesUpLetsReadersIn", Blocking, writerThatGivesUpLetsReadersIn},
		{"TimedStorm", Blocking, rwTimedStorm},
		{"DowngradeLetsReadersInAndNoWriter", Blocking, downgradeLetsReadersIn},
	}
}

func tryFormsFollowTheState(o Options, l RWMutex) error {
	for range 2 {
		if !l.TryRLock() {
			return errors.New("free: TryRLock failed with no writer about")
		}
	}
	if l.TryLock() {
		return errors.New("exclusion: TryLock succeeded while two readers were inside")
	}
	l.RUnlock()
	if l.TryLock() {
		return errors.New("exclusion: TryLock succeeded while a reader was inside")
	}
	l.RUnlock()
	if !l.TryLock() {
		return errors.New("free: TryLock failed after the last reader had left")
	}
	if l.TryRLock() {
		return errors.New("exclusion: TryRLock succeeded while a writer was inside")
	}
	l.Unlock()
	return rwIsFree(l)
}

func rwIsFree(l RWMutex) error {
	if !l.TryRLock() {
		return errors.New("free: TryRLock failed after everybody had left")
	}
	l.RUnlock()
	return isFree(l)
}

// readersShare wants eight readers inside at the same time.
func readersShare(o Options, l RWMutex) error {
	const n = 8
	arrived, leave := make(chan struct{}, n), make(chan struct{})
	var all []*Sleeper
	for range n {
		all = append(all, Start(func() {
			l.RLock()
			arrived <- struct{}{}
			<-leave
			l.RUnlock()
		}))
	}
	patience := time.After(o.Patience)
	for i := range n {
		select {
		case <-arrived:
		case <-patience:
			close(leave)
			return fmt.Errorf("sharing: only %d of %d readers got in", i, n)
		}
	}
	close(leave)
	return errors.Join(allEnd(o, all), rwIsFree(l))
}

// rAcquire takes l for reading in one of the ways it offers and reports whether it holds it.
func rAcquire(o Options, l RWMutex, r *rand.Rand) bool {
	n := r.IntN(16)
	if t, ok := l.(TimedReader); ok && o.Lacks&Blocking == 0 {
		switch n {
		case 0:
			return t.TryRLockFor(time.Duration(r.IntN(100)-10) * time.Microsecond)
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(100))*time.Microsecond)
			defer cancel()
			return t.RLockContext(ctx) == nil
		}
	}
	if n < 5 {
		return l.TryRLock()
	}
	l.RLock()
	return true
}

func rwExclusion(o Options, l RWMutex, counted bool) error {
	c := newCrew(o)
	room := c.newRoom(counted)
	c.loop(c.Goroutines, func(id int, r *rand.Rand) error {
		// A third of the workers only read, the others write now and then, so that both fast and slow paths are seen.
		if id%3 != 0 && r.IntN(4) == 0 {
			return rwWrite(c, l, room, id, r)
		}
		return rwRead(c, l, room, r)
	})
	return first(c.run, room.audit, rwFree(l))
}

func rwWrite(c *crew, l RWMutex, room *room, id int, r *rand.Rand) error {
	if !acquire(c.Options, l, r) {
		runtime.Gosched()
		return nil
	}
	if err := room.write(id, func() { c.pause(r) }); err != nil {
		return err
	}
	if d, ok := l.(Downgrader); ok && r.IntN(4) == 0 {
		d.Downgrade()
		if err := room.read(func() { c.pause(r) }); err != nil {
			return fmt.Errorf("after Downgrade: %w", err)
		}
		l.RUnlock()
		return nil
	}
	l.Unlock()
	return nil
}

func rwRead(c *crew, l RWMutex, room *room, r *rand.Rand) error {
	if !rAcquire(c.Options, l, r) {
		runtime.Gosched()
		return nil
	}
	if err := room.read(func() { c.pause(r) }); err != nil {
		return err
	}
	l.RUnlock()
	c.pause(r)
	return nil
}

func rwBursts(o Options, l RWMutex) error {
	end := time.Now().Add(o.Duration)
	for round := 0; time.Now().Before(end); round++ {
		c := newCrew(o)
		room := c.newRoom(true)
		gate := make(chan struct{})
		for id := range c.Goroutines {
			r := o.rng(round*c.Goroutines + id)
			c.start(func() error {
				<-gate
				for range 1 + r.IntN(4) {
					if err := rwBurstTurn(l, room, id, r); err != nil {
						return err
					}
				}
				return nil
			})
		}
		close(gate)
		if err := first(c.wait, room.audit, rwFree(l)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func rwBurstTurn(l RWMutex, room *room, id int, r *rand.Rand) error {
	if r.IntN(3) == 0 {
		l.Lock()
		defer l.Unlock()
		return room.write(id, func() { work(r.IntN(32)) })
	}
	l.RLock()
	defer l.RUnlock()
	return room.read(func() { work(r.IntN(32)) })
}

func writerWaitsForTheLastReader(o Options, l RWMutex) error {
	const n = 5
	for range n {
		l.RLock()
	}
	writer := Start(func() { l.Lock(); l.Unlock() })
	for i := range n {
		if err := writer.WaitAsleep(o.Patience); err != nil {
			return fmt.Errorf("exclusion: with %d readers inside: %w", n-i, err)
		}
		l.RUnlock()
	}
	return errors.Join(writer.WaitEnded(o.Patience), rwIsFree(l))
}

func anotherGoroutineMayRUnlock(o Options, l RWMutex) error {
	l.RLock()
	l.RLock()
	writer := Start(func() { l.Lock(); l.Unlock() })
	if err := writer.WaitAsleep(o.Patience); err != nil {
		return err
	}
	for _, s := range []*Sleeper{Start(l.RUnlock), Start(l.RUnlock), writer} {
		if err := s.WaitEnded(o.Patience); err != nil {
			return err
		}
	}
	return rwIsFree(l)
}

func waitingWriterKeepsNewReadersOut(o Options, l RWMutex) error {
	var order []string
	l.RLock()
	writer := Start(func() {
		l.Lock()
		order = append(order, "writer")
		l.Unlock()
	})
	if err := writer.WaitAsleep(o.Patience); err != nil {
		return err
	}
	if l.TryRLock() {
		return errors.New("preference: TryRLock succeeded while a writer was waiting")
	}
	reader := Start(func() {
		l.RLock()
		order = append(order, "reader")
		l.RUnlock()
	})
	if err := reader.WaitAsleep(o.Patience); err != nil {
		return fmt.Errorf("preference: a new reader did not wait for the waiting writer: %w", err)
	}
	l.RUnlock()
	if err := allEnd(o, []*Sleeper{writer, reader}); err != nil {
		return err
	}
	if order[0] != "writer" {
		return fmt.Errorf("preference: a reader that came later went in before the waiting writer: %v", order)
	}
	return rwIsFree(l)
}

func waitingReadersGoBeforeTheNextWriter(o Options, l RWMutex) error {
	const readers = 3
	var in atomic.Int32
	var seen int32
	l.Lock()
	writer := Start(func() {
		l.Lock()
		seen = in.Load()
		l.Unlock()
	})
	if err := writer.WaitAsleep(o.Patience); err != nil {
		return err
	}
	all, err := asleep(o, readers, func(int) {
		l.RLock()
		in.Add(1)
		l.RUnlock()
	})
	if err != nil {
		return err
	}
	l.Unlock()
	if err := allEnd(o, append(all, writer)); err != nil {
		return err
	}
	if seen != readers {
		return fmt.Errorf("phase: a waiting writer went in after %d of the %d readers that waited for the writer before it",
			seen, readers)
	}
	return rwIsFree(l)
}

// readersDoNotStarveAWriter keeps at least one reader inside at any time.
func readersDoNotStarveAWriter(o Options, l RWMutex) error {
	c := newCrew(o)
	var turns atomic.Int64
	c.loop(4, func(_ int, r *rand.Rand) error {
		l.RLock()
		time.Sleep(time.Duration(100+r.IntN(200)) * time.Microsecond)
		l.RUnlock()
		turns.Add(1)
		return nil
	})
	victim := Start(func() {
		for range 10 {
			l.Lock()
			l.Unlock()
			time.Sleep(100 * time.Microsecond)
		}
	})
	err := victim.WaitEnded(o.Patience)
	c.stop.Store(true)
	if err != nil {
		return fmt.Errorf("starved: writer, while readers went in %d times: %w", turns.Load(), err)
	}
	return c.wait()
}

// writersDoNotStarveAReader keeps a writer waiting at any time.
func writersDoNotStarveAReader(o Options, l RWMutex) error {
	c := newCrew(o)
	var turns atomic.Int64
	c.loop(4, func(_ int, r *rand.Rand) error {
		l.Lock()
		time.Sleep(time.Duration(20+r.IntN(50)) * time.Microsecond)
		l.Unlock()
		turns.Add(1)
		return nil
	})
	victim := Start(func() {
		for range 10 {
			l.RLock()
			l.RUnlock()
			time.Sleep(100 * time.Microsecond)
		}
	})
	err := victim.WaitEnded(o.Patience)
	c.stop.Store(true)
	if err != nil {
		return fmt.Errorf("starved: reader, while writers went in %d times: %w", turns.Load(), err)
	}
	return c.wait()
}

func timedReadersKeepTheirWord(o Options, l RWMutex) error {
	t, ok := l.(TimedReader)
	if !ok {
		return nil
	}
	if !t.TryRLockFor(time.Millisecond) {
		return errors.New("timed: TryRLockFor of a free lock failed")
	}
	if err := t.RLockContext(context.Background()); err != nil {
		return fmt.Errorf("timed: RLockContext beside another reader: %w", err)
	}
	l.RUnlock()
	l.RUnlock()
	l.Lock()
	if err := timedAgainstHeld(o, readerAsTimed{t}); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	l.Unlock()
	return rwIsFree(l)
}

// readerAsTimed lets the checks of the writer side judge the reader side.
type readerAsTimed struct{ TimedReader }

func (r readerAsTimed) TryLockFor(d time.Duration) bool       { return r.TryRLockFor(d) }
func (r readerAsTimed) LockContext(ctx context.Context) error { return r.RLockContext(ctx) }

// writerThatGivesUpLetsReadersIn: readers that wait only because a writer waits must not go on waiting when it leaves.
func writerThatGivesUpLetsReadersIn(o Options, l RWMutex) error {
	t, ok := l.(Timed)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.RLock()
	var err error
	writer := Start(func() { err = t.LockContext(ctx) })
	if err := writer.WaitAsleep(o.Patience); err != nil {
		return err
	}
	readers := []*Sleeper{Start(func() { l.RLock(); l.RUnlock() }), Start(func() { l.RLock(); l.RUnlock() })}
	time.Sleep(time.Millisecond) // with writer preference they are asleep by now; if not, nothing is proven and nothing fails
	cancel()
	if err := allEnd(o, append(readers, writer)); err != nil {
		return fmt.Errorf("timed: after the waiting writer gave up, with a reader inside: %w", err)
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("timed: a cancelled LockContext returned %v, want %v", err, context.Canceled)
	}
	l.RUnlock()
	return rwIsFree(l)
}

func rwTimedStorm(o Options, l RWMutex) error {
	tw, ok := l.(Timed)
	tr, ok2 := l.(TimedReader)
	if !ok || !ok2 {
		return nil
	}
	end := time.Now().Add(o.Duration)
	for round := 0; time.Now().Before(end); round++ {
		c := newCrew(o)
		room := c.newRoom(true)
		for id := range c.Goroutines {
			r := o.rng(round*c.Goroutines + id)
			c.start(func() error {
				for range 8 {
					if err := rwStormTurn(c, l, tw, tr, room, id, r); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := first(c.wait, room.audit, rwFree(l)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func rwStormTurn(c *crew, l RWMutex, tw Timed, tr TimedReader, room *room, id int, r *rand.Rand) error {
	if r.IntN(3) == 0 {
		if !acquireImpatiently(l, tw, id, r) {
			return nil
		}
		defer l.Unlock()
		return room.write(id, func() { c.pause(r) })
	}
	if !acquireImpatiently(readerAsMutex{l}, readerAsTimed{tr}, id, r) {
		return nil
	}
	defer l.RUnlock()
	return room.read(func() { c.pause(r) })
}

// readerAsMutex is the reader side as a Mutex, as sync.RWMutex.RLocker is.
type readerAsMutex struct{ l RWMutex }

func (r readerAsMutex) Lock()         { r.l.RLock() }
func (r readerAsMutex) TryLock() bool { return r.l.TryRLock() }
func (r readerAsMutex) Unlock()       { r.l.RUnlock() }

func downgradeLetsReadersIn(o Options, l RWMutex) error {
	d, ok := l.(Downgrader)
	if !ok {
		return nil
	}
	l.Lock()
	writers, err := asleep(o, 1, func(int) { l.Lock(); l.Unlock() })
	if err != nil {
		return err
	}
	// Before the downgrade a reader waits; it comes after the writer, yet the downgrade may not let that writer in.
	readers, err := asleep(o, 2, func(int) { l.RLock(); l.RUnlock() })
	if err != nil {
		return err
	}
	d.Downgrade()
	if err := writers[0].WaitAsleep(o.Patience); err != nil {
		return fmt.Errorf("exclusion: a writer went in while the downgraded lock was held for reading: %w", err)
	}
	l.RUnlock()
	if err := allEnd(o, append(readers, writers...)); err != nil {
		return err
	}
	l.Lock()
	d.Downgrade()
	if !l.TryRLock() {
		return errors.New("sharing: TryRLock failed after Downgrade with no writer about")
	}
	l.RUnlock()
	l.RUnlock()
	return rwIsFree(l)
}
