// Package parking puts goroutines to sleep on the address of a word.
//
// A [Table] is to a Go process what the futex hash is to Linux: a hash table of
// buckets, each with a lock and the queues of the addresses that fall into it.
// A lock built on it needs no queue of its own, only a few bits. [Default] is
// the table that package sync2 parks in.
//
// # Use
//
// A goroutine that finds its word in a state to wait for calls [Table.Park].
// Under the bucket's lock Park calls validate, which looks at the word again;
// only if it still holds the waiter is queued. Whoever changes the word then
// calls [Table.UnparkOne] or a relative, which takes the same bucket lock. So
// either the waiter is queued before the waker looks, or validate sees the
// change: no wake-up is lost.
//
// A waker that has just written the word with a sequentially consistent
// operation may ask [Table.Waiting] first: it costs one load when nobody is
// there. That is sound because Park raises the bucket's count before it
// validates.
//
// # Callbacks
//
// Unless a function says otherwise, its callbacks run under bucket locks, on a
// goroutine that is pinned to its P: they must not block, allocate, call this
// package or panic. A panic there kills the process. The race detector does not
// watch them: an atomic operation in a callback draws no edge.
//
// # Inside
//
//	key     -> hash    one per table (private), or one shared by all tables (global)
//	hash    -> bucket  64 bytes: lock, count, mark, first queue; look-up returns
//	                   {hash, bucket} as a pair, the bucket does not point back
//	bucket  -> queue   one for each address; its first waiter carries it
//	queue   -> waiter  FIFO; a record on the heap, owned by the sleeping goroutine
//
// An unpark costs the number of addresses in the bucket, never the number of
// their waiters.
//
// A resize gives the current hash a successor and migrates bucket by bucket:
// nobody holds more than two bucket locks at a time, and operations go on
// meanwhile. See resize.go.
//
// # Lock order
//
// The resize mutex of a Table comes before bucket locks, and nobody waits for it
// while holding one or while queued. A goroutine that holds a bucket's lock
// only tries the lock of a second bucket, and starts over if it cannot have it:
// waiting could make it unpin. Goroutines are readied after the bucket lock is
// dropped.
package parking
