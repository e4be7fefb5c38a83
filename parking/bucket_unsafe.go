package parking

import "unsafe"

const (
	bucketSize = 64
	bucketUsed = unsafe.Sizeof(bucketFields{})
)

// newBuckets returns n buckets, each in a cache line of its own.
//
// The memory is allocated as plain words, because the runtime aligns an array
// with pointers in it to 8 bytes only, and shifting a typed array would put its
// pointers where the garbage collector does not expect them. So the collector
// does not follow the buckets' pointers. It need not: a waiter is reachable
// from the stack of its owner for as long as it is queued (Park keeps it alive
// until the record has left its queue), records do not move, and the
// memory itself stays alive through the slice. It also spares the collector
// the scan of the table.
func newBuckets(n int) []bucket {
	const words = bucketSize / 4
	mem := make([]uint32, (n+1)*words)
	base := uintptr(unsafe.Pointer(&mem[0]))
	skip := (bucketSize - base%bucketSize) % bucketSize / 4
	return unsafe.Slice((*bucket)(unsafe.Pointer(&mem[skip])), n)
}

// line returns the cache line of b, which it does not touch: to take the address of
// a field would, since a field of nothing has none.
//
//go:norace
func (b *bucket) line() unsafe.Pointer { return unsafe.Pointer(b) }

// AddrOf returns the address of a word as a number, for a Key. The caller keeps
// the word alive while it is parked on. The word is on the heap: on a stack, which
// moves, it would get another address, and the old one might get another word.
func AddrOf[T any](word *T) uintptr {
	p := unsafe.Pointer(word)
	if p == nil {
		escaped, p = p, escaped // never for a word, but the compiler does not know
	}
	return uintptr(p)
}

// escaped makes what is assigned to it escape. It stays nil.
var escaped unsafe.Pointer

// edgeAddr stands for w in what the race detector is told.
//
//go:norace
func (w *waiter) edgeAddr() unsafe.Pointer { return unsafe.Pointer(&w.token) }
