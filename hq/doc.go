// Package hq is a spin lock for sections of a few instructions: the lock of a
// bucket of package parking.
//
// A goroutine that holds a [Lock] is pinned to its P: the Go scheduler can
// neither preempt nor move it, so nobody spins for a holder that does not run,
// unless the operating system took the holder's thread. The price is that a
// section must be short, must not block or allocate, and must not panic: a
// panic while pinned kills the process.
//
// # Mode Q
//
// The outer shape is that of a fissile lock (Dice and Kogan, "Fissile Locks",
// 2020): a word that any running thread may take while it is free, and a queue
// of waiters of which only the head competes for the word. The queue follows
// MCS with one node for each P, a waiter's reference in the lock word as in
// Linux's qspinlock, and a pending bit that spares a lone waiter the queue.
// What is passed along the queue is the right to compete, never the lock
// itself, since the receiver's thread may be off its CPU. A head that starves
// bars others from taking the free word.
//
// Every pinned wait is bounded, because a stop-the-world waits for whoever is
// pinned. A waiter whose time is up leaves its node behind as abandoned (it is
// unlinked by the head that meets it), unpins itself, and sleeps until an unlock
// calls it. One sleeper of a lock is on its way at a time, and competes beside the
// head: behind the queue it would be late again. A waiter whose thread has lost its
// CPU for longer than the bound is passed over.
//
// # Mode HQ
//
// A lock whose waiters come from several locality domains, groups of CPUs
// between which moving a cache line is dear, is taken by turns: the idea of the
// hq-spinlock proposed for Linux in 2025, with the inner shape of a cohort lock
// (Dice, Marathe and Shavit, "Lock Cohorting", 2012). The waiters of a domain
// have a queue of their own, their cohort. A cohort has one place in the lock's
// queue, and its waiters hand that on among themselves until a budget of
// hand-overs or of time is spent or nobody of the cohort waits any more; then the
// next cohort has its turn, in the order in which they came.
//
// What this takes beside the word, a roster, is one of 256 of the process. The
// head of the queue takes one when the waiters have seen many hand-overs and,
// after several inside a domain, some between domains; what has queued before
// stays in front. A lock gives its roster back when its queue has run empty
// several times with no hand-over to another cohort. If all rosters are in use a
// lock stays in mode Q: correct, and only slower.
//
// On a machine of one domain no lock goes to mode HQ, and [Lock.SetHQ] says so for
// a single lock. A lock that never does costs the same as if there were no such
// mode: its word is 0 when it is free. Which domain a waiter is in is a hint, read
// without a system call; a wrong one costs speed. [Load] makes the domains known.
//
// In builds that cannot pin (see package rt) a Lock is a sync.Mutex behind the
// same methods.
package hq
