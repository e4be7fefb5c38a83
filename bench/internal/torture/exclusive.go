package torture

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
)

// The short holds of locktorture.
const (
	writerHold = 2 * time.Microsecond
	readerHold = 10 * time.Microsecond
)

// place is what a lock protects. Its fields are plain: atomic ones would be edges for the race detector that hide a
// missing one of the lock. Only readers, who are many at a time, count themselves atomically.
type place struct {
	name    string
	_       harness.Pad
	owner   int32 // member inside, 0: nobody
	entered uint64
	readers atomic.Int32
	_       harness.Pad
}

// occupy is a writer's section.
func (p *place) occupy(m *member) {
	if other := p.owner; other != 0 {
		m.s.fail("exclusion: member %d came into %s and found member %d inside", m.id, p.name, other)
	}
	if n := p.readers.Load(); n != 0 {
		m.s.fail("exclusion: member %d came into %s to write and found %d readers inside", m.id, p.name, n)
	}
	p.owner = m.id
	p.entered++
	m.hold(writerHold)
	if other := p.owner; other != m.id {
		m.s.fail("exclusion: member %d was in %s when member %d came in", m.id, p.name, other)
	}
	if n := p.readers.Load(); n != 0 {
		m.s.fail("exclusion: member %d was writing in %s when %d readers came in", m.id, p.name, n)
	}
	p.owner = 0
	m.acquired.Add(1)
}

// visit is a reader's section.
func (p *place) visit(m *member) {
	p.readers.Add(1)
	before := p.entered
	if other := p.owner; other != 0 {
		m.s.fail("exclusion: member %d came into %s to read and found member %d inside", m.id, p.name, other)
	}
	m.hold(readerHold)
	if other := p.owner; other != 0 || p.entered != before {
		m.s.fail("exclusion: member %d was reading in %s when a writer came in", m.id, p.name)
	}
	p.readers.Add(-1)
	m.acquired.Add(1)
}

// inspectBy checks that the writers' acquisitions are the sections.
func (p *place) inspectBy(writers []*member, lock mutex) error {
	acquired := uint64(0)
	for _, m := range writers {
		acquired += m.acquired.Load()
	}
	if acquired != p.entered {
		return fmt.Errorf("conservation: %s was acquired %d times and entered %d times", p.name, acquired, p.entered)
	}
	if !lock.TryLock() {
		return fmt.Errorf("conservation: %s is not free", p.name)
	}
	lock.Unlock()
	return nil
}

// acquire takes the lock in one of the ways that there are, and reports whether it got it.
func (m *member) acquire(l mutex) bool {
	t, hasTimed := l.(timed)
	switch way := m.luck.IntN(8); {
	case way == 0:
		return m.got(l.TryLock())
	case way == 1 && hasTimed:
		return m.got(t.TryLockFor(m.patience()))
	case way == 2 && hasTimed:
		return m.got(m.impatient(t.LockContext) == nil)
	}
	l.Lock()
	return true
}

func (m *member) got(ok bool) bool {
	if !ok {
		m.gaveUp.Add(1)
	}
	return ok
}

// mutexRoom is a mutex and its place.
type mutexRoom struct {
	place
	mu   mutex
	crew []*member
}

func (s *session) enlistMutex(i int) {
	r := &mutexRoom{place: place{name: fmt.Sprintf("mutex %d", i)}, mu: s.locks.mutex()}
	r.crew = s.crew("mutex", s.Members, r.turn)
	s.rooms = append(s.rooms, r)
}

func (r *mutexRoom) turn(m *member) {
	if m.acquire(r.mu) {
		r.occupy(m)
		r.mu.Unlock()
	}
}

func (r *mutexRoom) rouse()         {}
func (r *mutexRoom) inspect() error { return r.inspectBy(r.crew, r.mu) }

// rwRoom is a reader-writer lock and its place; half of its crew write.
type rwRoom struct {
	place
	mu      rwMutex
	writers []*member
}

func (s *session) enlistRWMutex(i int) {
	r := &rwRoom{place: place{name: fmt.Sprintf("rwmutex %d", i)}, mu: s.locks.rwMutex()}
	r.writers = s.crew("rwmutex write", (s.Members+1)/2, r.write)
	s.crew("rwmutex read", (s.Members+1)/2, r.read)
	s.rooms = append(s.rooms, r)
}

func (r *rwRoom) write(m *member) {
	if !m.acquire(r.mu) {
		return
	}
	r.occupy(m)
	d, can := r.mu.(downgrader)
	if !can || !m.oneIn(8) {
		r.mu.Unlock()
		return
	}
	before := r.entered
	d.Downgrade()
	if r.entered != before || r.owner != 0 {
		m.s.fail("exclusion: a writer came into %s while member %d downgraded", r.name, m.id)
	}
	r.mu.RUnlock()
}

func (r *rwRoom) read(m *member) {
	if m.acquireShared(r.mu) {
		r.visit(m)
		r.mu.RUnlock()
	}
}

func (m *member) acquireShared(l rwMutex) bool {
	t, hasTimed := l.(timedReader)
	switch way := m.luck.IntN(8); {
	case way == 0:
		return m.got(l.TryRLock())
	case way == 1 && hasTimed:
		return m.got(t.TryRLockFor(m.patience()))
	case way == 2 && hasTimed:
		return m.got(m.impatient(t.RLockContext) == nil)
	}
	l.RLock()
	return true
}

func (r *rwRoom) rouse()         {}
func (r *rwRoom) inspect() error { return r.inspectBy(r.writers, r.mu) }

// waitFor waits on what has a context form as well, every fourth time with one that ends soon. It reports whether the
// wait ended by itself.
func (m *member) waitFor(w interface{ Wait() }) bool {
	if c, ok := w.(contextWaiter); ok && m.oneIn(4) {
		return m.got(m.impatient(func(ctx context.Context) error { return c.WaitContext(ctx) }) == nil)
	}
	w.Wait()
	return true
}
