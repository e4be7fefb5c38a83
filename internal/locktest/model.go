package locktest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Model is a reader-writer lock with every optional form, written to be seen through: one sync.Mutex around the state,
// one channel per waiter, direct hand-over in FIFO order, phases as in sync.RWMutex. It is the reference that every
// check must accept, and, with a Fault, the broken lock that some check must reject.
type Model struct {
	fault Fault

	mu      sync.Mutex
	writer  bool
	owner   uint64 // the writer's goroutine, kept for one fault only
	readers int
	queue   []*ticket
	events  int // counts the occasions to go wrong

	abandoned chan struct{}
}

// A ticket is a waiter. Whoever grants it has already changed the state on its behalf.
type ticket struct {
	write   bool
	id      uint64
	granted chan struct{}
}

// NewModel returns a free lock with the given fault.
func NewModel(f Fault) *Model { return &Model{fault: f, abandoned: make(chan struct{})} }

// Abandon ends every goroutine that waits for the lock now or later, so that a broken lock leaves nothing behind.
func (m *Model) Abandon() { close(m.abandoned) }

func (m *Model) Lock()                                 { m.acquire(true, nil, nil) }
func (m *Model) RLock()                                { m.acquire(false, nil, nil) }
func (m *Model) TryLockFor(d time.Duration) bool       { return m.acquireFor(true, d) }
func (m *Model) TryRLockFor(d time.Duration) bool      { return m.acquireFor(false, d) }
func (m *Model) LockContext(ctx context.Context) error { return m.acquireContext(true, ctx) }
func (m *Model) RLockContext(ctx context.Context) error {
	return m.acquireContext(false, ctx)
}

func (m *Model) TryLock() bool { return m.try(true) }

// TryRLock fails while a writer waits, like Lock's preference demands.
func (m *Model) TryRLock() bool { return m.try(false) }

func (m *Model) acquireFor(write bool, d time.Duration) bool {
	if m.fault == EarlyTimeout {
		d /= 2
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return m.acquire(write, timer.C, nil)
}

func (m *Model) acquireContext(write bool, ctx context.Context) error {
	if !m.acquire(write, nil, ctx.Done()) {
		return ctx.Err()
	}
	return nil
}

// acquire takes the lock or joins the queue until it is granted, the timer fires or cancel is closed.
func (m *Model) acquire(write bool, timer <-chan time.Time, cancel <-chan struct{}) bool {
	if m.fault == NoExclusion || m.fault == CheckThenAct && m.lateTake(write) {
		return true
	}
	m.mu.Lock()
	if m.admits(write) {
		m.take(write, goroutineOf(m.fault))
		m.mu.Unlock()
		return true
	}
	t := &ticket{write: write, id: goroutineOf(m.fault), granted: make(chan struct{})}
	m.enqueue(t)
	m.mu.Unlock()
	return m.await(t, timer, cancel)
}

func (m *Model) await(t *ticket, timer <-chan time.Time, cancel <-chan struct{}) bool {
	if m.fault == TimeoutIgnored {
		timer, cancel = nil, nil
	}
	select {
	case <-t.granted:
		return true
	case <-timer:
	case <-cancel:
	case <-m.poll():
		return m.retry(t)
	case <-m.abandoned:
		runtime.Goexit()
	}
	return m.giveUp(t)
}

// giveUp withdraws the ticket unless it was granted meanwhile.
func (m *Model) giveUp(t *ticket) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.queue, t)
	if i < 0 {
		return m.fault != TimeoutKeepsLock
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	if m.fault != LeaverForgetsOthers {
		m.dispatch(false)
	}
	return m.fault == TimeoutLies
}

func (m *Model) try(write bool) bool {
	if m.fault == TryLockWaits {
		return m.acquire(write, nil, nil)
	}
	if m.fault == NoExclusion {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admits(write) {
		m.take(write, goroutineOf(m.fault))
		return true
	}
	if m.fault == TryLockLeaks {
		m.queue = append(m.queue, &ticket{write: write, granted: make(chan struct{})})
	}
	return m.fault == TryLockLies && m.oneIn(64)
}

// admits reports whether an arrival may go in at once.
func (m *Model) admits(write bool) bool {
	if m.fault == ReadersIgnoreWriter && !write {
		return true
	}
	if m.fault == ReadersExcludeReaders {
		write = true
	}
	if write {
		return !m.writer && m.readers == 0 && (len(m.queue) == 0 || m.fault == Greedy)
	}
	return !m.writer && (m.fault == NoWriterPreference || !slices.ContainsFunc(m.queue, isWriter))
}

func (m *Model) take(write bool, id uint64) {
	if write {
		m.writer, m.owner = true, id
	} else {
		m.readers++
	}
}

func (m *Model) enqueue(t *ticket) {
	if m.fault == ShortQueue && len(m.queue) >= 6 {
		return // forgotten
	}
	m.queue = append(m.queue, t)
}

func (m *Model) Unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.fault == NoExclusion:
		return
	case m.fault == OwnedByGoroutine && m.owner != goroutineID():
		return
	case !m.writer && m.fault == NoFault:
		panic("locktest: unlock of a model that no writer holds")
	}
	m.writer = false
	m.dispatch(true)
}

func (m *Model) RUnlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readers == 0 && m.fault == NoFault {
		panic("locktest: runlock of a model that no reader holds")
	}
	m.readers--
	if m.fault == WriterIgnoresOtherReaders && len(m.queue) > 0 {
		m.readers = 0
	}
	m.dispatch(false)
}

// Downgrade lets the readers in that wait, and no writer.
func (m *Model) Downgrade() {
	if m.fault == DowngradeGap {
		m.Unlock()
		m.RLock()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writer, m.readers = false, 1
	m.grantReaders()
}

// dispatch hands the lock over. After a writer the waiting readers go first, after the last reader the first writer.
func (m *Model) dispatch(afterWriter bool) {
	if m.writer || m.readers > 0 && slices.ContainsFunc(m.queue, isWriter) {
		return
	}
	if m.fault == Greedy || m.fault == LostWake && len(m.queue) > 0 && m.oneIn(61) {
		return
	}
	writersFirst := m.fault == WritersAlwaysFirst || !afterWriter
	if writersFirst && m.grantWriter() || m.grantReaders() {
		return
	}
	m.grantWriter()
}

func (m *Model) grantWriter() bool {
	if m.readers > 0 {
		return false
	}
	i := slices.IndexFunc(m.queue, isWriter)
	if i < 0 {
		return false
	}
	if m.fault == LIFO {
		for j, t := range m.queue {
			if t.write {
				i = j
			}
		}
	}
	m.grant(i)
	if m.fault == DoubleGrant && m.oneIn(16) {
		if i := slices.IndexFunc(m.queue, isWriter); i >= 0 {
			m.grant(i)
		}
	}
	return true
}

func (m *Model) grantReaders() bool {
	any := false
	for i := 0; i < len(m.queue); {
		if m.queue[i].write {
			i++
			continue
		}
		m.grant(i)
		any = true
		if m.fault == OneReaderPerPhase || m.fault == ReadersExcludeReaders {
			break
		}
	}
	return any
}

func (m *Model) grant(i int) {
	t := m.queue[i]
	m.queue = slices.Delete(m.queue, i, i+1)
	m.take(t.write, t.id)
	close(t.granted)
}

func isWriter(t *ticket) bool { return t.write }

// oneIn is true on every nth occasion.
func (m *Model) oneIn(n int) bool {
	m.events++
	return m.events%n == 0
}

// lateTake looks at the lock, yields and takes it whatever has happened meanwhile.
func (m *Model) lateTake(write bool) bool {
	m.mu.Lock()
	free := m.admits(write)
	m.mu.Unlock()
	if !free {
		return false
	}
	runtime.Gosched()
	m.mu.Lock()
	m.take(write, 0)
	m.mu.Unlock()
	return true
}

// poll fires when a waiter of a greedy lock looks again; other locks never poll.
func (m *Model) poll() <-chan time.Time {
	if m.fault != Greedy {
		return nil
	}
	return time.After(time.Second)
}

func (m *Model) retry(t *ticket) bool {
	m.mu.Lock()
	m.queue = slices.DeleteFunc(m.queue, func(q *ticket) bool { return q == t })
	m.mu.Unlock()
	return m.acquire(t.write, nil, nil)
}

func goroutineOf(f Fault) uint64 {
	if f != OwnedByGoroutine {
		return 0
	}
	return goroutineID()
}

// Fault is a way to be broken.
type Fault int

// The faults. Each stands for a mistake that was made in some real lock or prototype.
const (
	NoFault                   Fault = iota
	NoExclusion                     // nobody ever waits
	CheckThenAct                    // the test and the set are two steps
	TryLockLies                     // now and then TryLock claims a lock that it did not get
	TryLockWaits                    // TryLock sleeps until the lock is free
	TryLockLeaks                    // a failed TryLock stays in the queue
	LostWake                        // now and then an unlock with waiters wakes nobody
	DoubleGrant                     // now and then an unlock lets two waiters in
	LIFO                            // the youngest waiter is served first
	Greedy                          // an unlock wakes nobody, arrivals barge, waiters look again once a second
	OwnedByGoroutine                // an unlock by another goroutine than the locker's is ignored
	ShortQueue                      // the seventh waiter is forgotten
	TimeoutKeepsLock                // a waiter that gives up while it is granted keeps the lock
	TimeoutLies                     // a waiter that gives up claims the lock
	TimeoutIgnored                  // a waiter never gives up
	EarlyTimeout                    // a waiter gives up at half time
	LeaverForgetsOthers             // a writer that gives up does not let in the readers that waited for it only
	ReadersIgnoreWriter             // readers go in while a writer is inside
	WriterIgnoresOtherReaders       // a waiting writer goes in when the first reader leaves
	ReadersExcludeReaders           // two readers are never inside together
	NoWriterPreference              // readers go in while a writer waits
	WritersAlwaysFirst              // readers wait as long as any writer waits
	OneReaderPerPhase               // only one of the waiting readers is let in
	DowngradeGap                    // Downgrade is Unlock and RLock
	endOfFaults
)

// Faults returns every fault but NoFault.
func Faults() []Fault {
	var fs []Fault
	for f := NoFault + 1; f < endOfFaults; f++ {
		fs = append(fs, f)
	}
	return fs
}

var faultNames = [endOfFaults]string{
	"NoFault", "NoExclusion", "CheckThenAct", "TryLockLies", "TryLockWaits", "TryLockLeaks", "LostWake", "DoubleGrant",
	"LIFO", "Greedy", "OwnedByGoroutine", "ShortQueue", "TimeoutKeepsLock", "TimeoutLies", "TimeoutIgnored",
	"EarlyTimeout", "LeaverForgetsOthers", "ReadersIgnoreWriter", "WriterIgnoresOtherReaders", "ReadersExcludeReaders",
	"NoWriterPreference", "WritersAlwaysFirst", "OneReaderPerPhase", "DowngradeGap",
}

func (f Fault) String() string {
	if f < 0 || f >= endOfFaults {
		return fmt.Sprintf("Fault(%d)", int(f))
	}
	return faultNames[f]
}
