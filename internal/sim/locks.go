//go:build sim

package sim

import (
	"sync"
	"time"
)

// A Mutex stands for a sync.Mutex inside the code under test. It must be unlocked when a schedule begins.
type Mutex struct {
	real sync.Mutex
}

// Lock locks m.
func (m *Mutex) Lock() {
	if t := current(); t != nil {
		t.lock(addr(m))
		return
	}
	m.real.Lock()
}

// TryLock locks m if it is free.
func (m *Mutex) TryLock() bool {
	if t := current(); t != nil {
		return t.tryLock(addr(m))
	}
	return m.real.TryLock()
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	if t := current(); t != nil {
		t.unlock(addr(m))
		return
	}
	m.real.Unlock()
}

// LockWhole, TryLockWhole and UnlockWhole let any object stand for a lock: a seam calls them instead of the methods of a lock
// that is built of words, so that a program of its users need not contain the lock's own steps. What the lock promises
// must then be checked by programs of its own. *p is not touched. The lock must be free when a schedule begins. Only for
// threads of a run.
func LockWhole[T any](p *T) { current().lock(addr(p)) }

// TryLockWhole locks it if it is free. See LockWhole.
func TryLockWhole[T any](p *T) bool { return current().tryLock(addr(p)) }

// UnlockWhole unlocks it. See LockWhole.
func UnlockWhole[T any](p *T) { current().unlock(addr(p)) }

// lock waits until the lock at p is free, and locks it.
func (t *thread) lock(p addr) {
	w := t.e.word(p, object)
	t.guardedPoint(opLock, w, value{n: 1})
	t.use(w)
	t.drainAll()
	t.observe(value{}, w.history)
	t.put(w, 1, "")
}

func (t *thread) tryLock(p addr) bool {
	w := t.e.word(p, object)
	t.point(opTryLock, w)
	t.use(w)
	t.drainAll()
	t.observe(value{n: w.obj}, w.history)
	if w.obj != 0 {
		t.reads.add(w, value{n: w.obj})
		t.e.note(t, w, value{n: 1}, value{n: 1}, failed)
		return false
	}
	t.put(w, 1, "")
	return true
}

func (t *thread) unlock(p addr) {
	w := t.e.word(p, object)
	t.point(opUnlock, w)
	t.use(w)
	t.drainAll()
	if w.obj == 0 {
		t.fail(KindMisuse, t.name+" unlocks an unlocked lock")
	}
	t.put(w, 0, "")
}

// A Semaphore counts permits; the zero value has none. It stands for a counting semaphore, or for a channel of empty structs.
type Semaphore struct {
	n    Uint32
	mu   sync.Mutex // outside a run
	cond sync.Cond
}

// Acquire takes a permit and waits for one if there is none.
func (s *Semaphore) Acquire() {
	if current() == nil {
		s.acquireReal(func() bool { return false })
		return
	}
	for {
		if n := s.n.Load(); n == 0 {
			WaitWhileEqual32(&s.n, 0)
		} else if s.n.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// AcquireFor is Acquire with a limit; false: there was no permit in time. In a run it may return false at any scheduling
// point.
func (s *Semaphore) AcquireFor(d time.Duration) bool {
	if current() == nil {
		late := false
		tm := time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			late = true
			s.cond.Broadcast()
		})
		defer tm.Stop()
		return s.acquireReal(func() bool { return late })
	}
	for {
		if n := s.n.Load(); n == 0 {
			if WaitWhileEqualFor32(&s.n, 0, d) == 0 {
				return false
			}
		} else if s.n.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// acquireReal waits until there is a permit or giveUp says so.
func (s *Semaphore) acquireReal(giveUp func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cond.L = &s.mu
	for s.n.v.Load() == 0 {
		if giveUp() {
			return false
		}
		s.cond.Wait()
	}
	s.n.v.Add(^uint32(0))
	return true
}

// Release gives a permit back.
func (s *Semaphore) Release() { s.release(^uint32(0)) }

// ReleaseOne is Release, but leaves it at one permit: a send to a channel with one slot that may be full.
func (s *Semaphore) ReleaseOne() { s.release(1) }

func (s *Semaphore) release(limit uint32) {
	if current() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cond.L = &s.mu
		if s.n.v.Load() < limit {
			s.n.v.Add(1)
			s.cond.Signal()
		}
		return
	}
	for n := s.n.Load(); n < limit; n = s.n.Load() {
		if s.n.CompareAndSwap(n, n+1) {
			return
		}
	}
}
