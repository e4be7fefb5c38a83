package parking

import "math/bits"

// A Table is a hash table of parked goroutines. The zero value is ready to use
// and costs no buckets until the first goroutine parks. A Table must not be
// copied after first use.
//
// A new table sizes itself: it starts small and grows as addresses collide,
// until SetSlots takes over.
type Table struct {
	current atomicPointer[hash] // nil until the first park
	space   atomicUint32        // this table's number, from 1; assigned with the first hash
	crowded atomicUint32        // 1 = a bucket has too many queues: grow at the next park

	resizing resizeMutex // guards the fields below, and every store to current
	mult     uint64      // random odd multiplier of the hash function, for the table's life
	custom   bool        // SetSlots has been called: no automatic growth

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
	buckets []bucket
	mult    uint64 // random and odd
	shift   uint8  // 64 - log2(len(buckets))
	fixed   bool   // immutable or global: no bucket ever moves, look-ups need not check
	global  bool
	next    atomicPointer[hash] // successor, from the start of its migration on
}

//go:norace
func newHash(n int, mult uint64, fixed bool) *hash {
	return &hash{buckets: newBuckets(n), mult: mult, shift: uint8(64 - bits.Len(uint(n-1))), fixed: fixed}
}

// A spot is where a key belongs in one generation.
type spot struct {
	*bucket
	path uint64 // to the key's queue in the bucket's tree, first step in the highest bit
}

// spot returns key's place in this generation. Multiply-shift with a random odd
// multiplier is universal (Dietzfelbinger et al., 1997): nobody can choose
// addresses that collide without knowing the multiplier. Key.Node has no part
// in it: it will choose among arrays, one for each NUMA node.
//
//go:norace
func (h *hash) spot(key Key) spot {
	x := scatter(key.Addr, h.mult)
	return spot{&h.buckets[x>>h.shift], x << (64 - h.shift)}
}

// first returns the hash to begin a look-up in, for a caller that is not pinned.
//
//go:norace
func (t *Table) first() *hash {
	if h := t.current.Load(); h != nil {
		return h
	}
	t.resizing.Lock()
	defer t.resizing.Unlock()
	t.birth()
	if t.current.Load() == nil {
		t.current.Store(newHash(initialSlots(), t.mult, false))
	}
	return t.current.Load()
}

// birth gives the table its number and its hash function. t.resizing is held.
//
//go:norace
func (t *Table) birth() {
	if t.mult == 0 {
		t.mult = multiplier()
		t.space.Store(spaces.Add(1))
	}
}

// lock locks the bucket that key belongs to and returns it with the place of
// its queue. The caller is pinned and holds no other bucket.
//
//go:norace
func (t *Table) lock(h *hash, key Key) (s spot, at **waiter) {
	for {
		s = h.spot(key)
		s.lock.LockPinned()
		if at, ok := t.here(h, s, key); ok {
			return s, at
		}
		s.lock.UnlockPinned()
		h = h.next.Load()
	}
}

// lockToPark is lock that counts the caller in first (B1).
//
//go:norace
func (t *Table) lockToPark(h *hash, key Key) (s spot, at **waiter) {
	for {
		s = h.spot(key)
		s.count.Add(1)
		s.lock.LockPinned()
		if at, ok := t.here(h, s, key); ok {
			return s, at
		}
		s.lock.UnlockPinned()
		s.count.Add(-1)
		h = h.next.Load()
	}
}

// here reports whether key belongs to s of h, which is locked, and not to a
// successor of h; if so it returns the place of key's queue.
//
//go:norace
func (t *Table) here(h *hash, s spot, key Key) (at **waiter, ok bool) {
	if h.fixed {
		return s.find(key, t.space.Load()), true
	}
	mark := s.mark.Load()
	if mark == moved {
		return nil, false
	}
	at = s.find(key, t.space.Load())
	return at, mark == live || *at != nil
}

// Waiting reports whether a goroutine may be parked on key. False is exact for
// a caller that has made its change of the word with a sequentially consistent
// operation: every goroutine that validated before the change has been woken or
// has left. True may be wrong, because keys share a bucket's count. It takes no
// lock.
//
//go:norace
func (t *Table) Waiting(key Key) bool {
	for h := t.current.Load(); h != nil; h = h.next.Load() {
		b := h.spot(key).bucket
		if b.count.Load() != 0 {
			return true
		}
		// In this order: count falls only after mark has left live (B3).
		if h.fixed || b.mark.Load() == live {
			return false
		}
	}
	return false
}
