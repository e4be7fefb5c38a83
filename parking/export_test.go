package parking

import (
	"fmt"
	"unsafe"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/internal/rt"
)

// RecordBytes is what the records that are made at a time take together.
const RecordBytes = magazineSize * unsafe.Sizeof(waiter{})

// Mix is the hash function of a table with the given multiplier.
func Mix(addr uintptr, mult uint64) uint64 { return mix(addr, mult) }

// BadTable returns a table whose hash function puts every address into one
// bucket, and below it into one branch.
func BadTable() *Table {
	t := new(Table)
	t.mult = 0
	t.space.Store(spaces.Add(1))
	return t
}

// Audit checks every invariant of t's current generation that can be seen at
// rest, and returns the number of goroutines queued. It must not run during a
// resize.
func (t *Table) Audit() (waiting int, err error) {
	h := t.current.Load()
	if h == nil {
		return 0, nil
	}
	h.each(func(b *bucket) {
		n, wrong := t.auditBucket(h, b)
		if wrong != nil {
			err = wrong
		}
		waiting += n
	})
	return waiting, err
}

//go:norace
func (t *Table) auditBucket(h *hash, b *bucket) (n int, err error) {
	pin()
	b.lock.LockPinned()
	var walk func(q *waiter)
	walk = func(q *waiter) {
		if q == nil || err != nil {
			return
		}
		key, _ := q.key()
		length := 0
		for w := q; w != nil; w = w.next {
			k, _ := w.key()
			switch {
			case k != key:
				err = fmt.Errorf("waiter of %v in the queue of %v", k, key)
			case !w.queued:
				err = fmt.Errorf("waiter in the queue of %v does not know it", key)
			case w.next == nil && w != q.prev:
				err = fmt.Errorf("tail of the queue of %v is not its last", key)
			case w.next != nil && w.next.prev != w:
				err = fmt.Errorf("neighbours in the queue of %v disagree", key)
			case w != q && (w.child != [2]*waiter{} || w.length != 0):
				err = fmt.Errorf("a waiter in the middle of the queue of %v carries it", key)
			}
			length++
		}
		s := h.spot(key)
		switch {
		case length != int(q.length):
			err = fmt.Errorf("queue of %v has %d waiters and says %d", key, length, q.length)
		case s.bucket != b:
			err = fmt.Errorf("queue of %v is in the wrong bucket", key)
		case *s.find(key, q.space) != q:
			err = fmt.Errorf("queue of %v cannot be found", key)
		}
		n += length
		walk(q.child[0])
		walk(q.child[1])
	}
	walk(b.head)
	if err == nil && int(b.count.Load()) != n {
		err = fmt.Errorf("count is %d with %d waiters", b.count.Load(), n)
	}
	if err == nil && b.mark.Load() != live {
		err = fmt.Errorf("mark is %d in the current generation", b.mark.Load())
	}
	b.lock.UnlockPinned()
	unpin()
	return n, err
}

// Queued returns the number of goroutines in key's queue.
//
//go:norace
func (t *Table) Queued(key Key) (n int) {
	h := t.root(Key{})
	pin()
	s, at := t.lock(h, key)
	if *at != nil {
		n = int((*at).length)
	}
	s.lock.UnlockPinned()
	unpin()
	return n
}

// LockBucket locks key's bucket until the returned function is called. The
// caller is pinned meanwhile.
//
//go:norace
func (t *Table) LockBucket(key Key) (unlock func()) {
	h := t.root(Key{})
	pin()
	s, _ := t.lock(h, key)
	return func() {
		s.lock.UnlockPinned()
		unpin()
	}
}

// SameBucket reports whether two keys share a bucket now.
func (t *Table) SameBucket(a, b Key) bool {
	h := t.root(Key{})
	return h.spot(a).bucket == h.spot(b).bucket
}

// Layout of a bucket and the addresses of a new table's buckets.
const BucketSize = unsafe.Sizeof(bucket{})

func BucketAddresses(n int) (addrs []uintptr) {
	buckets := newBuckets(n)
	for i := range buckets {
		addrs = append(addrs, uintptr(unsafe.Pointer(&buckets[i])))
	}
	return addrs
}

// HoldResize keeps calls of SetSlots waiting until the returned function is
// called; Asked is how many wait.
func (t *Table) HoldResize() (release func()) {
	t.resizing.Lock()
	return t.resizing.Unlock
}

//go:norace
func (t *Table) Asked() int {
	t.asking.Lock()
	defer t.asking.Unlock()
	return len(t.asked)
}

// Generation identifies the table's current hash.
func (t *Table) Generation() any { return t.current.Load() }

// A Record is a waiter record outside any queue.
type Record struct {
	w      *waiter
	ticket uint32
}

func NewRecord(t *Table, key Key) *Record {
	w := pinWithRecord()
	unpin()
	return &Record{w, t.fill(w, key, &Options{})}
}

// Alarm returns what a timer of the current wait would call.
func (r *Record) Alarm() func() {
	a := &alarm{parker: &r.w.parker, ticket: r.ticket}
	return a.ring
}

func (r *Record) BeginWait() { r.ticket = r.w.parker.Prepare() }
func (r *Record) EndWait()   { r.w.parker.Leave() }
func (r *Record) Wake()      { r.w.parker.Unpark(0) }

// Sleep reports whether the wait was ended by Wake, and not disturbed by an alarm.
func (r *Record) Sleep() bool {
	return r.w.parker.Park(ReasonSemacquire, 0) == rt.Signalled
}

// GrowFrom makes a table that sizes itself grow from n slots, and returns how many
// it has then.
func (t *Table) GrowFrom(n int) int {
	t.resizing.Lock()
	h, err := t.generation(n, mutable)
	if err != nil {
		panic(err)
	}
	t.current.Store(h)
	t.resizing.Unlock()
	t.grow()
	return t.Slots()
}

// AsksToGrow reports whether the next Park will try to enlarge the table.
func (t *Table) AsksToGrow() bool { return t.crowded.Load() == 1 }

const MaxAutoSlots = maxAutoSlots

// BeginResize starts a resize to n slots, moves up to queues queues of each
// bucket, and leaves it there until finish is called. SetSlots would wait.
func (t *Table) BeginResize(n, queues int) (finish func()) {
	old := t.root(Key{})
	t.resizing.Lock()
	new, err := t.generation(n, mutable)
	if err != nil {
		panic(err)
	}
	old.next.Store(new)
	old.each(func(b *bucket) { t.migrate(b, new, queues) })
	return func() {
		t.replace(old, new)
		t.resizing.Unlock()
	}
}

// NewNUMATable returns a table of a made-up machine: the ids of its NUMA nodes,
// the node of a caller, and the node that an address's memory policy prefers.
// Tables that like is nil for share nothing; others are on like's machine.
func NewNUMATable(nodes []int, here func() int, policy func(uintptr) int, like *Table) *Table {
	t := new(Table)
	if like != nil {
		t.in = like.in
		return t
	}
	t.in = new(domain)
	if policy == nil {
		policy = func(uintptr) int { return NoNode }
	}
	t.in.numa.Store(newMachine(nodes, 2*len(nodes), here, policy))
	return t
}

// ArrayOf returns the index of the NUMA node in whose buckets a key is.
func (t *Table) ArrayOf(key Key) int {
	h := t.root(key)
	if h.arrays == nil {
		return 0
	}
	return h.numa.array(key.Node, h.spot(key).path)
}

// Index returns the number of a key's bucket in its array.
func (t *Table) Index(key Key) int {
	h := t.root(key)
	return int(scatter(key.Addr, h.mult) >> h.shift)
}

// Arrays returns the pages of the table's bucket arrays.
func (t *Table) Arrays() []NodePages { return pagesOf(t.root(Key{})) }

// GlobalArrays returns the pages of the arrays that tables share.
func (t *Table) GlobalArrays() []NodePages { return pagesOf(t.globalHash()) }

func pagesOf(h *hash) (list []NodePages) {
	for i, a := range h.arrays {
		n := NodePages{Node: h.numa.nodes[i]}
		for j := 0; j < len(a); j += 4096 / bucketSize {
			a[j].count.Add(1) // a page that has only been read is not anywhere
			a[j].count.Add(^uint32(0))
			n.Pages = append(n.Pages, uintptr(unsafe.Pointer(&a[j])))
		}
		list = append(list, n)
	}
	return list
}

type NodePages struct {
	Node  int
	Pages []uintptr
}

// WaitVCount is WaitV that also returns how many wake-ups were used up.
func (t *Table) WaitVCount(entries []WaitEntry, limit Limit) (index, used int, err error) {
	return t.waitV(entries, limit)
}

// AuditGlobal returns the number of waiters in the global hash of t's domain.
func (t *Table) AuditGlobal(tb interface{ Error(...any) }) (waiting int) {
	h := t.home().global.Load()
	if h == nil {
		return 0
	}
	h.each(func(b *bucket) {
		n, err := t.auditBucket(h, b)
		if err != nil {
			tb.Error(err)
		}
		waiting += n
	})
	return waiting
}

// CountsReferences reports whether the table's hash is of a measured design.
func (t *Table) CountsReferences() bool { return t.current.Load().mode == counted }

// References returns the number of operations that are inside the table's hash,
// as it counts them.
func (t *Table) References() (n int64) {
	if r := t.current.Load().ladder; r != nil {
		n = r.all.Load()
		for i := range r.shards {
			n += r.shards[i].n
		}
	}
	return n
}

// MappedBuckets returns the number of buckets in placed memory.
func MappedBuckets() int64 { return mapped.Load() }

// TakeOff takes the first waiter off key's queue as a waker does, and returns
// what the waker does last.
//
//go:norace
func (t *Table) TakeOff(key Key) (signal func()) {
	h := t.root(key)
	pin()
	s, at := t.lock(h, key)
	w := *at
	dequeue(at, w)
	s.lower(1)
	s.release()
	unpin()
	return func() {
		race.Disable()
		w.signal(0, false, 0)
		race.Enable()
	}
}
