// Package workload lists the workloads that every implementation offers.
//
// What is measured must be what a program gets that imports the package: calls that the compiler resolved and inlined.
// A type parameter or an interface would put a call through a dictionary between the loop and Lock, several times
// dearer than an uncontended Lock. So the loops are written once, in package std, as any program would write them
// against "sync"; package ours is the same text with that one import changed, as a user of sync2 would change it, and
// a test keeps the two in step. Another test asks the compiler whether Lock was inlined into both.
//
// The two copies are laid out by the linker, not by us. Build with -tags sync2_std to see what that alone is worth:
// sync2 is then package sync behind its own types.
package workload

import "github.com/hqsync/hqsync/bench/internal/harness"

// A Set makes fresh jobs on the locks of one implementation. A nil member: the implementation has no such lock.
//
// In and out are steps of work inside and outside the section, g is a number of goroutines.
type Set struct {
	// MutexAlone: one goroutine locks and unlocks. In bounded batches, so that the meter costs nothing.
	MutexAlone func() harness.Job
	// Mutex: g goroutines share one lock in a closed loop. Timed: every Lock.
	Mutex func(g, in, out int) harness.Job

	// DoAlone and Do: as MutexAlone and Mutex, with a function called under the lock, by Mutex.Do where there is one.
	DoAlone func() harness.Job
	Do      func(g, in, out int) harness.Job

	// RWMutexReadAlone: one goroutine locks and unlocks for reading, after warm goroutines have done so together.
	RWMutexReadAlone func(warm int) harness.Job
	// RWMutexRead: g goroutines only read, empty section.
	RWMutexRead func(g int) harness.Job
	// RWMutexMix: g goroutines read, and each locks for writing in every nth round. Timed: every write Lock.
	RWMutexMix func(g, nth, in int) harness.Job
	// RWMutexWriteAlone: one goroutine locks and unlocks for writing.
	RWMutexWriteAlone func() harness.Job

	// CondBroadcast: waiters wait on one condition, are woken together and each run in steps under the lock. Its
	// operation is one broadcast, timed until the last waiter has run. held: the lock is held during Broadcast.
	CondBroadcast func(waiters, in int, held bool) harness.Job
	// CondPingPong: two goroutines pass a turn to and fro by Signal. Its operation is one turn of the first.
	CondPingPong func() harness.Job

	// WaitGroupForkJoin: one goroutine starts n others and waits for them.
	WaitGroupForkJoin func(n int) harness.Job
	// WaitGroupAddDone: g goroutines share a WaitGroup and each call Add(1) and Done.
	WaitGroupAddDone func(g int) harness.Job

	// Parked: goroutines wait for mutexes that are locked, each for one, in turn.
	Parked func(waiters, mutexes int) Parked
}

// Parked are goroutines that are to wait in Lock.
type Parked struct {
	// Start starts them.
	Start func()
	// Wake unlocks the first n mutexes, on each of which somebody waits.
	Wake func(n int)
	// Passed tells when all have returned from Lock that Wake has unlocked for.
	Passed <-chan struct{}
}

// Batch is the number of operations of an uncontended loop between two looks at the meter.
const Batch = 64
