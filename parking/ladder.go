package parking

import "github.com/hqsync/hqsync/internal/lookup"

// The look-up designs that Linux went through, to be measured beside the shipped
// one: see package lookup. They pay at look-up and release what the kernel's
// paid. What keeps an operation off a bucket that has moved is the mark in all
// of them, so all are correct, and none is cheaper for it.

// references counts the operations that are inside a hash.
type references struct {
	design lookup.Design
	shards []shard // one for each P
	_      [64]byte
	all    atomicInt64
}

type shard struct {
	n int64 // changed by the P that the caller is pinned to
	_ [56]byte
}

const shards = 64

// lookup returns the mode of the table's next mutable hash.
func (t *Table) lookup() mode {
	if lookup.Next() == lookup.Pair {
		return mutable
	}
	return counted
}

// climb prepares a new hash for the design in force.
//
//go:norace
func (h *hash) climb() {
	h.ladder = &references{design: lookup.Next(), shards: make([]shard, shards)}
	if h.ladder.design == lookup.BackPointer {
		h.each(func(b *bucket) { b.setBack(h.ladder) })
	}
}

//go:norace
func (b *bucket) setBack(r *references) { b.back = r }

// refer counts the caller, which is pinned, into the hash of s by n, 1 or -1.
//
//go:norace
func (s spot) refer(n int64) {
	r := s.hash.ladder
	switch r.design {
	case lookup.Atomic:
		r.all.Add(n)
		return
	case lookup.BackPointer:
		r = s.back // a load from the line that everybody writes
	}
	p := pin()
	unpin()
	r.shards[p%shards].n += n
}
