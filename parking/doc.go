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
// # Futexes
//
// [Table.Wait], [Table.Wake], [Table.Requeue], [Table.WakeOp] and [Table.WaitV]
// are Linux's futex operations inside a process, on words of 32 bits, with masks,
// NUMA nodes and memory policies. Semantics, order of checks and errors are the
// kernel's; TestLinuxTable has the answers of Linux 6.18 row by row, and the
// reason where one here differs.
//
// # Inside
//
//	key     -> hash    one per table (private), or one shared by all tables (global)
//	hash    -> array   one for each NUMA node, placed there; a machine with one node has one
//	array   -> bucket  64 bytes: lock, count, mark, tree of queues, tally; look-up
//	                   returns {bucket, hash} as a pair, the bucket does not point back
//	bucket  -> queue   one for each address; its first waiter carries it
//	queue   -> waiter  FIFO; a record on the heap, owned by the sleeping goroutine
//
// An unpark costs the logarithm of the number of addresses in the bucket, and
// nothing for their waiters.
//
// A resize gives the current hash a successor and migrates bucket by bucket:
// nobody holds more than two bucket locks at a time, and operations go on
// meanwhile. See resize.go.
//
// # Which node
//
// A key of layer 1 may name a NUMA node; its buckets are those that the table has
// there. A futex word with the flag NUMA, or with MPOL and a policy that prefers
// a node, is in that node's part of the global hash, as in Linux. All other keys
// are spread over the nodes by their address. Arrays of different nodes are
// memory of the system's, not of the Go heap, with a policy that prefers the
// node; it goes back when the hash is collected.
//
// # Lock order
//
// The resize mutex of a Table comes before bucket locks, and nobody waits for it
// while holding one or while queued. A goroutine that holds a bucket's lock
// only tries the lock of a second bucket, and starts over if it cannot have it:
// waiting could make it unpin. Goroutines are readied after the bucket lock is
// dropped.
//
// # Invariants
//
// With the tests that pin them. Most tests also end with an audit of the whole
// table (I8).
//
//	I1   wake-ups given and received are the same number, under limits, requeues,
//	     resizes and Close
//	       TestConservation TestFutexConservation TestLinuxDifferential
//	I2   who stores and then wakes, and who compares and then sleeps, do not miss
//	     each other
//	       TestP13_WaitingIsFalse_OnlyIfNobodySleepsOnTheOldValue
//	       TestStoreThenWake_NoWaiterIsLost
//	I3   a wait is not satisfied by a wake-up that came before it
//	       TestP14_WaitAfterAWake_IsNotSatisfiedByIt
//	I4   a waiter that has not validated is not chosen
//	       TestP15_WaiterThatIsRefused_TakesNoWakeUp
//	I5   FIFO for each address, across resizes and moves to the global hash; a
//	     requeue appends
//	       TestResize_ParkedWaitersSurvive_OrderPerAddressIsKept
//	       TestRequeue_AcrossAnyResize_OrderIsKept
//	       TestHalfMigratedBucket_NewcomersJoinTheirQueue
//	I6   no more are woken or moved than asked for, and no fewer than there are
//	       TestP19_WakeOfSome_LeavesTheOthersQueued TestSequentialModel
//	I7   after a wait no queue holds its record and no waker touches it
//	       TestP2_RecordIsReused_OnlyAfterItsWakerIsThrough
//	       TestGarbageCollector_FreedMemoryClobbered
//	I8   at rest a bucket's count is the length of its queues
//	       TestSequentialModel TestResizeRacesEverything_NobodyIsLost
//	I9   a timer or context of an earlier wait does not touch a later one
//	       TestP24_OldTimer_DoesNotTouchTheNextWaitOfTheRecord
//	       TestStaleAlarm_Misses
//	I10  a node word is stored once, and only a possible node
//	       TestB5_NodeWordEdges_AreRefusedUntouched
//	I11  wait and wake with the same flags meet, wherever they run
//	       TestNoNode_ManyChooseAtOnce_AllMeet
//	I12  SetSlots that returns nil was in force, or outranked; one choice of the
//	     global hash succeeds
//	       TestB4_RacingSettersOfZero_OneWins TestRacingSetters_HighestRankWins
//	       TestSetSlots_ErrorsInOrder
//	I13  an immutable or global table never changes its hash
//	       TestImmutable_TheHashNeverChangesAgain
//	I14  a resize needs nobody to wake up
//	       TestResize_NeedsNobodyToWake
//	I15  in the steady state nothing is allocated, and nothing shared is written but
//	     the bucket
//	       TestSteadyState_AllocatesNothing TestFutexSteadyState_AllocatesNothing
//	       TestWakeWithoutWaiters_TakesNoLock TestLookupDesigns_AllWork
//	I16  old generations are collected; an unused table has no buckets
//	       TestResize_MemoryComesBack TestPlacedMemory_GoesWithItsHash
//	       TestUnusedTable_HasNoBuckets
//	I17  a busy bucket is in nobody's way but of its own addresses
//	       TestBucketHeld_OthersGoOn
//	I18  errors in the order of Linux
//	       TestLinuxTable TestLinuxDifferential
package parking
