// Package hq is a spin lock for sections of a few instructions: the lock of a
// bucket of package parking.
//
// A goroutine that holds a [Lock] is pinned to its P: the Go scheduler can
// neither preempt nor move it, so nobody spins for a holder that does not run,
// unless the operating system took the holder's thread. The price is that a
// section must be short, must not block or allocate, and must not panic: a
// panic while pinned kills the process.
//
// # Algorithm
//
// The outer shape is that of a fissile lock (Dice and Kogan, "Fissile Locks",
// 2020): a word that any running thread may take while it is free, and a queue
// of waiters of which only the head competes for the word. The queue follows
// MCS with one node for each P, a waiter's reference in the lock word as in
// Linux's qspinlock, and a pending bit that spares a lone waiter the queue.
// What is passed along the queue is the right to compete, never the lock
// itself, since the receiver's thread may be off its CPU.
//
// Every pinned wait is bounded, because a stop-the-world waits for whoever is
// pinned. A waiter whose time is up leaves its node behind as abandoned (it is
// unlinked by the head that meets it), unpins itself, and sleeps until an
// unlock.
//
// In builds that cannot pin (see package rt) a Lock is a sync.Mutex behind the
// same methods.
package hq
