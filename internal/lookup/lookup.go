// Package lookup is the switch between the ways in which package parking's
// tables can guard a look-up against a resize. There is one that is shipped; the
// others are what the Linux kernel's private futex hash went through, kept so
// that benchmarks can print their price side by side.
//
// An immutable table needs no guard and is the same in all designs.
package lookup

import "sync/atomic"

// A Design is a way to guard look-ups.
type Design uint32

const (
	// Pair: no reference; {bucket, hash} are passed on as a pair, and the
	// bucket's mark is checked once it is locked. The shipped design.
	Pair Design = iota
	// Atomic: one atomic reference count for each hash, taken and dropped by
	// every operation (Linux 6.16-rc).
	Atomic
	// Sharded: a count for each P (Linux 6.17).
	Sharded
	// BackPointer: a count for each P, of a hash that is found through a pointer
	// in the bucket, at look-up and at release (Linux 6.17 to 7.1).
	BackPointer

	numDesigns
)

var names = [numDesigns]string{"pair", "atomic reference", "sharded references", "back pointer"}

// String returns the design's name.
func (d Design) String() string {
	if d < numDesigns {
		return names[d]
	}
	return "unknown"
}

// Designs returns all designs.
func Designs() []Design { return []Design{Pair, Atomic, Sharded, BackPointer} }

var next atomic.Uint32

// Next returns the design of hashes that are made from now on.
func Next() Design { return Design(next.Load()) }

// SetNext chooses the design of hashes that are made from now on. A table gets
// one with its first SetSlots.
func SetNext(d Design) { next.Store(uint32(d)) }
