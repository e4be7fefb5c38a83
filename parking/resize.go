package parking

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/hqsync/hqsync/internal/race"
)

// Flags of SetSlots.
const (
	Immutable = 1 << 0 // forbid every later change
)

// MaxSlots is the largest number of slots that SetSlots accepts.
const MaxSlots = 1 << 24

// maxAutoSlots is where automatic growth ends.
const maxAutoSlots = 1 << 18

// SetSlots gives the table n buckets of 64 bytes, or for n = 0 makes it use the
// hash that all tables share. It returns when that is in force. Goroutines that
// are parked stay parked, in their order, and neither they nor anybody who
// wakes them has to do anything for it.
//
// n is 0 or a power of two from 2 to MaxSlots. The choice of 0 is final, and so
// is any choice with the flag Immutable, which spares each operation the check
// whether its bucket has moved. The first call ends automatic growth.
//
// It returns ErrInvalid for an unknown flag or another n, ErrBusy if an earlier
// choice was final, and ErrNoMemory above MaxSlots, in that order and with
// nothing changed.
func (t *Table) SetSlots(n uint64, flags uint32) error {
	switch {
	case flags&^Immutable != 0, n == 1, n&(n-1) != 0, n >= 1<<32:
		return ErrInvalid
	}
	race.Disable()
	defer race.Enable()
	t.resizing.Lock()
	defer t.resizing.Unlock()
	old := t.current.Load()
	if old != nil && old.fixed {
		return ErrBusy
	}
	if n > MaxSlots {
		return ErrNoMemory
	}
	t.birth()
	t.custom = true
	fixed := flags&Immutable != 0
	switch {
	case n == 0:
		t.replace(old, globalHash())
	case old == nil || fixed || len(old.buckets) != int(n):
		t.replace(old, newHash(int(n), t.mult, fixed))
	}
	return nil
}

// Slots returns the number of buckets of the table's own hash: 0 if it has none
// yet, or uses the global one.
func (t *Table) Slots() int {
	h := t.current.Load()
	if h == nil || h.global {
		return 0
	}
	return len(h.buckets)
}

// Immutable reports whether SetSlots has become impossible, by the flag or by
// the choice of the global hash.
func (t *Table) Immutable() bool {
	h := t.current.Load()
	return h != nil && h.fixed
}

// globalHash returns the hash that tables share: 256 buckets for each CPU,
// rounded up to a power of two, in one array until there is one for each NUMA
// node.
var globalHash = sync.OnceValue(func() *hash {
	n := 1 << bits.Len(uint(256*runtime.NumCPU()-1))
	h := newHash(n, rand.Uint64()|1, true)
	h.global = true
	return h
})

// grow enlarges a table that sizes itself. Only a goroutine that is about to
// park comes here, before it queues; if somebody else is at it already, it goes
// on.
//
//go:norace
func (t *Table) grow() {
	if !t.resizing.TryLock() {
		return
	}
	t.crowded.Store(0)
	if old := t.current.Load(); !t.custom && old != nil && !old.fixed && len(old.buckets) < maxAutoSlots {
		t.replace(old, newHash(4*len(old.buckets), t.mult, false))
	}
	t.resizing.Unlock()
}

// replace makes new the table's hash. t.resizing is held.
//
// Operations find their way during the migration: whoever comes to an old
// bucket goes on to the successor if the bucket has moved, or is migrating and
// has no queue for the key. New waiters of a key thus join its queue wherever
// it is, and B2 and their order hold.
//
//go:norace
func (t *Table) replace(old, new *hash) {
	if old != nil {
		old.next.Store(new) // before any mark tells of it
		for i := range old.buckets {
			for !migrate(&old.buckets[i], new) {
			}
		}
	}
	t.current.Store(new)
}

// migrateBatch bounds the queues that are moved, or looked for, in one pinned
// stretch.
const migrateBatch = 64

// migrate moves queues of b to new and reports whether that was the last.
//
//go:norace
func migrate(b *bucket, new *hash) (done bool) {
	pin()
	b.lock.LockPinned()
	b.mark.Store(migrating) // B3: before the first queue leaves
	for range migrateBatch {
		q := b.head
		if q == nil {
			b.mark.Store(moved)
			done = true
			break
		}
		to := new.bucket(q.key())
		if !to.tryLock() {
			break
		}
		n := int32(q.length)
		to.count.Add(n) // B3: before the old count falls
		b.head = q.nextQueue
		q.nextQueue = to.head
		to.head = q // W3
		to.lock.UnlockPinned()
		b.count.Add(-n)
	}
	b.lock.UnlockPinned()
	unpin()
	return done
}
