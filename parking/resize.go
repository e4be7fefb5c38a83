package parking

import (
	"runtime"
	"slices"

	"github.com/hqsync/hqsync/internal/race"
)

// Flags of SetSlots.
const (
	Immutable = 1 << 0 // forbid every later change
)

// MaxSlots is the largest number of slots that SetSlots accepts: 2^24, or 2^20
// where addresses have 32 bits.
const MaxSlots = 1 << (20 + 4*(^uintptr(0)>>63))

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
// choice was final, and ErrNoMemory above MaxSlots or if the system has no memory
// for n, ErrClosed after Close, in that order and with nothing changed. If several calls wait for their turn, only the highest is
// carried out: final choices rank above others, 0 above any n, a large n above
// a small one. A call that was outranked has been superseded and returns nil,
// or ErrBusy if the other was final.
//
//go:norace
func (t *Table) SetSlots(n uint64, flags uint32) error {
	if flags&^Immutable != 0 || n == 1 || n&(n-1) != 0 || n >= 1<<32 {
		return ErrInvalid
	}
	if t == &defaultTable {
		t.root(Key{}) // what the environment says comes first
	}
	if t.Immutable() {
		return ErrBusy
	}
	if n > MaxSlots {
		return ErrNoMemory
	}
	if t.closed.Load() != 0 {
		return ErrClosed
	}
	t.prepare()
	race.Disable()
	r := &request{slots: int(n), final: n == 0 || flags&Immutable != 0}
	t.ask(r)
	t.resizing.Lock()
	if !r.answered { // else whoever had the mutex before has carried it out, or one that outranks it
		t.answer()
	}
	t.resizing.Unlock()
	race.Enable()
	return r.err
}

// A request is one call of SetSlots.
type request struct {
	slots    int // 0 = global
	final    bool
	answered bool // this and err are guarded by Table.resizing
	err      error
}

//go:norace
func (r *request) outranks(o *request) bool {
	switch {
	case r.final != o.final:
		return r.final
	case r.slots == 0 || o.slots == 0:
		return r.slots < o.slots
	}
	return r.slots > o.slots
}

//go:norace
func (t *Table) ask(r *request) {
	t.asking.Lock()
	t.asked = append(t.asked, r)
	t.asking.Unlock()
}

// answer carries out the highest of the requests that there are and answers
// all. t.resizing is held.
//
//go:norace
func (t *Table) answer() {
	t.asking.Lock()
	asked := t.asked
	t.asked = nil
	t.asking.Unlock()

	slices.SortFunc(asked, func(a, b *request) int {
		switch {
		case a.outranks(b):
			return -1
		case b.outranks(a):
			return 1
		}
		return 0
	})
	done := false
	for _, r := range asked {
		r.answered = true
		switch {
		case t.Immutable() && !mutant("slots: change after a final choice"):
			r.err = ErrBusy
		case !done: // the highest for which there is memory
			r.err = t.apply(r)
			done = r.err == nil
		}
	}
}

// apply carries out one request. t.resizing is held.
//
//go:norace
func (t *Table) apply(r *request) error {
	t.name()
	old := t.current.Load()
	if old != nil && !r.final && len(old.buckets) == r.slots {
		t.custom = true
		return nil
	}
	m := t.lookup()
	if r.final {
		m = fixed
	}
	new, err := t.generation(r.slots, m)
	if err != nil {
		return err
	}
	t.custom = true
	t.replace(old, new)
	return nil
}

// Slots returns the number of buckets that the table's own hash has on each NUMA
// node: 0 if it has none yet, or uses the global one.
//
//go:norace
func (t *Table) Slots() int {
	h := t.current.Load()
	if h == nil || h.global {
		return 0
	}
	return len(h.buckets)
}

// Immutable reports whether SetSlots has become impossible, by the flag or by
// the choice of the global hash.
//
//go:norace
func (t *Table) Immutable() bool {
	h := t.current.Load()
	return h != nil && h.mode == fixed
}

// The values of Table.crowded.
const (
	roomy      = iota
	tooSmall   // a bucket has too many queues: grow at the next park
	neverGrows // by itself, any more: else each park in a crowded bucket would ask for it, by a write that all share
)

// grow enlarges a table that sizes itself. Only a goroutine that is about to
// park comes here, before it queues; if somebody else is at it already, it goes
// on. If there is no memory the table stays as it is.
//
//go:norace
func (t *Table) grow() {
	if !t.resizing.TryLock() {
		return
	}
	old := t.current.Load()
	if t.custom || old.mode == fixed || len(old.buckets) >= maxAutoSlots {
		t.crowded.Store(neverGrows)
	} else {
		t.crowded.Store(roomy)
		if new, err := t.generation(min(4*len(old.buckets), maxAutoSlots), old.mode); err == nil {
			t.replace(old, new)
		}
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
		if !mutant("resize: successor told late") {
			old.next.Store(new) // before any mark tells of it
		}
		old.each(func(b *bucket) {
			for !t.migrate(b, new, migrateBatch) {
			}
		})
		if mutant("resize: successor told late") {
			old.next.Store(new)
		}
		t.resizes++
	}
	t.current.Store(new)
	runtime.KeepAlive(old)
}

// each calls f with every bucket.
//
//go:norace
func (h *hash) each(f func(b *bucket)) {
	arrays := h.arrays
	if arrays == nil {
		arrays = [][]bucket{h.buckets}
	}
	for _, a := range arrays {
		for i := range a {
			f(&a[i])
		}
	}
	runtime.KeepAlive(h)
}

// migrate moves up to limit queues of b to new, in one pinned stretch, and reports
// whether there are no more. t.resizing is held.
//
//go:norace
func (t *Table) migrate(b *bucket, new *hash, limit int) (done bool) {
	var busy *bucket
	pin()
	b.lock.LockPinned()
	t.stretch.begin()
	b.mark.Store(migrating) // B3: before the first queue leaves
	for n := 0; n < limit && b.head != nil && busy == nil; n++ {
		busy = moveQueue(b, new)
		t.stretch.tick(n)
	}
	if done = b.head == nil; done {
		b.mark.Store(moved)
		t.past.add(&b.tally)
		b.tally = tally{}
		b.lock.SetHQ(false) // nobody will settle it later
	}
	b.lock.UnlockPinned()
	t.stretch.end()
	if busy != nil { // wait for its holder, whose thread may be off its CPU
		busy.lock.LockPinned()
		busy.lock.UnlockPinned()
	}
	unpin()
	return done
}

// moveQueue moves some queue of b, which is locked, to new. If it cannot lock
// the bucket there it returns that.
//
//go:norace
func moveQueue(b *bucket, new *hash) (busy *bucket) {
	from := leaf(&b.head)
	q := *from
	key, _ := q.key()
	to := new.spot(key)
	if !to.tryLock() {
		return to.bucket
	}
	n := int(q.length)
	if mutant("resize: old count falls first") {
		b.lower(n)
		to.raise(n)
		n = 0
	}
	to.raise(n) // B3: before the old count falls
	*from = nil
	*to.find(key, q.space) = q // W3
	to.lock.UnlockPinned()
	b.lower(n)
	return nil
}
