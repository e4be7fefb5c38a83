package parking

import (
	"math/bits"
	"runtime"
)

// A Table is a hash table of parked goroutines. The zero value is ready to use
// and costs no buckets until the first goroutine parks. A Table must not be
// copied after first use.
//
// A new table sizes itself: it starts small and grows as addresses collide,
// until SetSlots takes over.
//
// On a machine with several NUMA nodes a table has its slots on each of them.
type Table struct {
	current atomicPointer[hash] // nil until the first park
	space   atomicUint32        // this table's number, from 1; assigned with the first hash
	crowded atomicUint32        // roomy, tooSmall, neverGrows: see resize.go
	closed  atomicUint32        // 1 = Close has been called
	stacks  atomicUint32        // 1 = RecordStacks is on
	in      *domain             // nil = process; set before first use

	resizing resizeMutex // guards the fields below, and every store to current
	mult     uint64      // random odd multiplier of the hash function, for the table's life
	custom   bool        // SetSlots has been called: no automatic growth
	past     tally       // of generations that are gone
	resizes  uint64
	stretch  stretch

	asking resizeMutex // guards asked; after resizing in lock order
	asked  []*request  // calls of SetSlots that have not been answered
}

// Default returns the table that package sync2 parks in.
func Default() *Table { return &defaultTable }

var defaultTable Table

// spaces counts the tables that have parked anybody.
var spaces atomicUint32

// A hash is one generation of a Table's buckets.
type hash struct {
	buckets []bucket   // of the first NUMA node, or of all if there is one
	arrays  [][]bucket // one for each NUMA node, all of one length; nil if there is one node
	numa    *machine
	mult    uint64 // random and odd
	shift   uint8  // 64 - log2(len(buckets))
	mode    mode
	global  bool
	next    atomicPointer[hash] // successor, from the start of its migration on
	ladder  *references         // see ladder.go
}

// A mode says what a look-up has to do beyond finding the bucket.
type mode uint8

const (
	mutable mode = iota // look at the bucket's mark, once it is locked
	fixed               // nothing: immutable or global, no bucket ever moves
	counted             // as mutable, and count references: see ladder.go
)

// generation returns a hash of n slots for the table, or for n = 0 the global one.
//
//go:norace
func (t *Table) generation(n int, m mode) (*hash, error) {
	if n == 0 {
		return t.home().globalHash(), nil
	}
	return newHash(n, t.mult, m, t.home().machine())
}

// newHash returns a hash with n buckets on each NUMA node.
//
//go:norace
func newHash(n int, mult uint64, m mode, numa *machine) (*hash, error) {
	h := &hash{numa: numa, mult: mult, shift: uint8(64 - bits.Len(uint(n-1))), mode: m}
	if len(numa.nodes) == 1 {
		h.buckets = newBuckets(n)
	} else {
		arrays, err := placeBuckets(n, numa.nodes)
		if err != nil {
			return nil, err
		}
		h.buckets, h.arrays = arrays[0], arrays
		runtime.AddCleanup(h, freeBuckets, arrays)
	}
	if m == counted {
		h.climb()
	}
	return h, nil
}

// A spot is where a key belongs in one generation: bucket and hash as a pair,
// the bucket does not point back. Whoever uses the bucket must keep the hash
// alive until the last access, since on a machine with several NUMA nodes the
// bucket's memory goes with it: see release.
type spot struct {
	*bucket
	hash *hash
	path uint64 // to the key's queue in the bucket's tree, first step in the highest bit
}

// mix spreads addresses over 64 bits. With an odd mult it is a bijection, so two
// addresses part company somewhere below the bits that choose the bucket.
//
// A random multiplier alone would be universal (Dietzfelbinger et al., 1997):
// nobody can choose addresses that collide without knowing it. But addresses in
// equal steps stay in equal steps, and with one multiplier in some thousand the
// step is next to nothing in the upper bits: 64 neighbouring words in one bucket.
// The second round breaks the steps.
//
//go:norace
func mix(addr uintptr, mult uint64) uint64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / the golden ratio
	x := uint64(addr) * mult
	return (x ^ x>>32) * golden
}

// spot returns key's place in this generation.
//
//go:norace
func (h *hash) spot(key Key) spot {
	x := scatter(key.Addr, h.mult)
	path := x << (64 - h.shift)
	buckets := h.buckets
	if h.arrays != nil {
		buckets = h.arrays[h.numa.array(key.Node, path)]
	}
	return spot{&buckets[x>>h.shift], h, path}
}

// raise counts n goroutines into the bucket, which is locked. It is a full fence:
// whoever changes a word and then finds them not in the count has changed it
// before a look at it that follows here.
//
//go:norace
func (b *bucket) raise(n int) {
	if mutant("park: counted without a fence") {
		storePlain(&b.count, b.count.Load()+uint32(n))
		return
	}
	b.count.Add(uint32(n))
}

// lower undoes raise. It needs no fence of its own: who reads the old count takes
// the lock for nothing. Nobody else writes meanwhile.
//
//go:norace
func (b *bucket) lower(n int) {
	if n != 0 {
		storePlain(&b.count, b.count.Load()-uint32(n))
	}
}

// acquire locks the bucket. The caller is pinned and holds no other.
//
//go:norace
func (s spot) acquire() {
	if s.hash.mode == counted {
		s.refer(1)
	}
	if !s.lock.TryLockPinned() {
		s.lock.LockPinned()
		s.contended++
	}
}

// release unlocks the bucket. It is the last use of a spot.
//
//go:norace
func (s spot) release() {
	s.lock.UnlockPinned()
	if s.hash.mode == counted {
		s.refer(-1)
	}
	runtime.KeepAlive(s.hash)
}

// root returns the hash to begin a look-up of key in, for a caller that is not
// pinned.
//
//go:norace
func (t *Table) root(key Key) *hash {
	h := t.current.Load()
	if h == nil || key.Node&inGlobal != 0 {
		h = t.otherRoot(key.Node)
	}
	return h
}

// otherRoot is root for the global hash and for a table without buckets.
//
//go:noinline
//go:norace
func (t *Table) otherRoot(node uint32) *hash {
	if node&inGlobal != 0 {
		return t.globalHash()
	}
	if mutant("birth: not one at a time") {
		return t.birth()
	}
	t.resizing.Lock()
	defer t.resizing.Unlock()
	return t.birth()
}

// globalHash returns the hash that tables share.
//
//go:norace
func (t *Table) globalHash() *hash {
	if t.space.Load() == 0 {
		t.resizing.Lock()
		t.name()
		t.resizing.Unlock()
	}
	return t.home().globalHash()
}

// home returns the domain that the table belongs to.
//
//go:norace
func (t *Table) home() *domain {
	if t.in != nil {
		return t.in
	}
	return &process
}

// name gives the table its number and its hash function. t.resizing is held.
//
//go:norace
func (t *Table) name() {
	if t.space.Load() == 0 {
		number := spaces.Add(1)
		t.mult = multiplier(number)
		t.space.Store(number)
	}
}

// birth returns the table's first buckets. t.resizing is held.
//
//go:norace
func (t *Table) birth() *hash {
	if h := t.current.Load(); h != nil {
		return h
	}
	t.name()
	n, m := initialSlots(), mutable
	if t == &defaultTable {
		n, t.custom, m = ordered(n)
	}
	h, err := t.generation(n, m)
	if err != nil { // no memory: share what there is
		h, _ = t.generation(0, fixed)
	}
	t.current.Store(h)
	return h
}

// spaceOf returns the number that a waiter's record must have to be one of key.
//
//go:norace
func (t *Table) spaceOf(key Key) uint32 {
	if key.Node&shared != 0 {
		return sharedSpace
	}
	return t.space.Load()
}

// lock locks the bucket that key belongs to and returns it with the place of
// its queue. The caller is pinned and holds no other bucket.
//
//go:norace
func (t *Table) lock(h *hash, key Key) (s spot, at **waiter) {
	for {
		s = h.spot(key)
		s.acquire()
		if at, ok := t.here(s, key); ok {
			return s, at
		}
		s.release()
		h = h.next.Load()
	}
}

// here reports whether key belongs to s, which is locked, and not to a successor
// of its hash; if so it returns the place of key's queue.
//
//go:norace
func (t *Table) here(s spot, key Key) (at **waiter, ok bool) {
	if s.hash.mode == fixed {
		return s.find(key, t.spaceOf(key)), true
	}
	mark := s.mark.Load()
	if mutant("resize: mark not looked at") {
		mark = live
	}
	if mark == moved {
		return nil, false
	}
	at = s.find(key, t.spaceOf(key))
	return at, mark == live || *at != nil || mutant("resize: newcomers stay behind")
}

// Waiting reports whether a goroutine may be parked on key. False is exact for
// a caller that has made its change of the word with a sequentially consistent
// operation: every goroutine that validated before the change has been woken or
// has left. True may be wrong, because keys share a bucket's count. It takes no
// lock.
//
//go:norace
func (t *Table) Waiting(key Key) bool {
	h := t.current.Load()
	if key.Node&inGlobal != 0 {
		h = t.home().global.Load()
	}
	for ; h != nil; h = h.next.Load() {
		b := h.spot(key).bucket
		if b.count.Load() != 0 {
			return true
		}
		// In this order: count falls only after mark has left live (B3).
		last := h.mode == fixed || mutant("waiting: no second look") || b.mark.Load() == live
		runtime.KeepAlive(h)
		if last {
			return false
		}
	}
	return false
}
