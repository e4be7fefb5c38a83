// Package sim is a deterministic scheduler and model checker for lock code. Except for this comment everything in
// it needs the build tag sim.
//
// # What it does
//
// A [Program] is a few threads of ordinary Go calls. [Explore] and [Run] execute it under many schedules, one
// shared access at a time, and report "N schedules, exhausted", "N schedules, budget spent" or a failing schedule:
// shrunk, as a trace (thread, operation, word, old -> new, file:line) and as a text that [Replay] turns into the
// same failure again. The code that runs is the code that ships; what differs is a file seam_sim.go per package,
// which takes its words, its waiting, its clock and its luck from here.
//
// # Threads and steps
//
// Threads are coroutines (iter.Pull), so exactly one runs at any moment and a switch costs some 70 ns. Each
// operation below is one step: the thread announces it, the strategy decides who goes on, the operation takes
// effect when the thread is chosen. Code between two operations belongs to the first of them. When a schedule ends
// early, threads are unwound by a panic that the engine recovers; code that recovers it in passing is unwound at
// its next operation. runtime.Goexit and panics work as in a goroutine; a panic that reaches the bottom of a thread
// is a failure.
//
// A goroutine that is not a thread of a run (the test itself, Setup, Check, Final, helpers of other tests) always
// gets the real thing, in the same process and at the same time: sync/atomic, sync.Mutex, time. That is decided per
// call by one atomic load while nothing is explored, and by a look at the goroutine's profiler labels (2 ns)
// otherwise. So ordinary tests pass under -tags sim, and up to four explorations run side by side. A thread must
// not start real goroutines, and must not wait for anything that the engine does not know: a channel, a real
// sync.Mutex that is held across a step.
//
// # The seam
//
// A package that takes part declares in seam.go (tag !sim) what it needs under names of its own, and the same names
// in seam_sim.go from this package:
//
//	seam.go                                  seam_sim.go
//	type uint32w = atomic.Uint32             type uint32w = sim.Uint32
//	func storePlain(p *uint32w, v uint32)    func storePlain(p *uint32w, v uint32) { sim.StorePlain32(p, v) }
//	func mutant(string) bool                 func mutant(name string) bool { return sim.Mutant(name) }
//	     { return false }
//
// Words. [Uint32], [Int32], [Uint64], [Int64], [Uintptr], [Bool], [Pointer] have the methods, the size and the zero
// value of sync/atomic. Accesses that are weaker than sync/atomic are functions on these types: [LoadPlain32],
// [StorePlain32], [LoadAcquire32], [StoreRelease32], the same for 64, Int32, Int64 and Ptr, and [Fence] and
// [HeavyFence]; the table in order.go says what they mean under each [Memory]. Memory that is not in such a word is
// ordinary Go memory: it is never stale, and the reduction ByHistory takes for granted that it is free of data
// races.
//
// Waiting. [Pause] in a spin loop blocks until a word changes that the loop has read, so that the engine sees no
// spinning; how often a loop looks at the clock and after how many rounds it gives up belongs into the seam and
// should be every round and one or two here, or a question to [Choose]. [WaitWhileEqual32] and its like wait for
// one word; a wait that gives up after n hints is
//
//	got := sim.LoadAcquire32(x); if got == v && n > 0 { sim.Pause(); got = sim.LoadAcquire32(x) }; return got
//
// [Yield] lets others go first. [Parker] has the contract of internal/rt's (Prepare, Park, Unpark, Kick, Rearm,
// Leave), each call one step, and fails the run when a caller breaks it; [Gopark] and [Goready] are there to check
// the Parker of internal/rt itself, and a [Semaphore], with ReleaseOne, is the channel of its portable twin.
// [Mutex] stands for a sync.Mutex, and [LockWhole] lets an object stand for a lock built of words: package parking's bucket
// lock is one step in a run. Under Options.Ready an unparked thread may run at once ([AnyP]) or only after
// its waker gave way ([RunNext]).
//
// Processors. A thread lives on one of Options.Procs simulated Ps. [Pin] returns the P's number and keeps the
// thread on it until [Unpin], and neither is a step while there is a P for each thread; with Options.Migrate an unpinned thread can come back on any P that nobody is pinned
// to, and no more threads run pinned than there are Ps. [CPU], [Domain], [Node] tell where the caller is.
// [MustPinned] and [MustNotPinned] are assertions; Park and Sleep while pinned fail by themselves.
//
// Time and luck. [Nanotime] is a virtual clock. [AfterFunc] runs a function in a thread of its own at any
// scheduling point from then on, as a choice of the strategy (Options.Timers); the clock then jumps to the timer's
// time. A thread that spins to a deadline may be let go on by the clock up to Options.Ticks times per schedule.
// [Sleep] and [WaitWhileEqualFor32] end at such a moment. [AfterCancel] is context.AfterFunc for a [Context], which
// a thread can cancel. [Go] starts a thread. [Rand] is the same in every schedule; [Choose] is every number in some
// schedule.
//
// Errors. [Fatal] is the end of the process for a seam's fatal error: a failure of the run, or with
// Options.ExpectFatal an outcome. [Failf] and [Assert] are for programs.
//
// Records. [Poison] and [Quarantine] replace the free list of waiter records: a record that went back is never
// reused, and an operation on a word in it fails the run. A record must then not be part of another object.
//
// [Running] reports whether the caller is a thread of a run, for a seam whose real counterpart does more than the
// fall-back here (park with a wait reason, pin the P, exit). Where a seam type must hold both, it is a struct of
// both, or an interface.
//
// # What a package must keep to
//
//   - Every access to shared words goes through the seam, also that of tests in the package.
//   - State that outlives a schedule (package variables, caches per P, tables) is made anew in Setup: a schedule must repeat
//     exactly. The engine compares, and reports a program that does not as "not deterministic".
//   - Nothing depends on addresses, map order, the real clock, math/rand, GOMAXPROCS or the number of the real CPU. A hash
//     of addresses takes [ID] instead.
//   - [Name] in Setup makes traces readable: sim.Name(&m, "m", "locked", "parked") names the fields of m and their bits.
//   - Check and Final may read words, but not call what waits.
//   - Parkers, mutexes and semaphores are idle when a schedule begins: what Setup does to them happens outside of the run.
//
// # Transitions
//
// The header of a file that owns a state word lists its transitions. Program.Watch is told of every write, with the
// object's name and the offset in it, and can name the transition that the pair of values stands for, or object to a pair that
// is none; Write.By says which functions make it. [Transitions] counts them; a test ends with those that no program took.
// parking/transitions_test.go is one that also follows state which is in no word, from Program.Check; sync2/transitions_test.go
// is one that also holds the headers to the functions that they name. Shipped code needs no hooks for it.
//
// # Mutants
//
// A fault is a branch in the code under test: if mutant("re-arm forgotten") { return }. Options.Mutant says which
// one is present in a run; an exploration that never asked for it (all of it, or 1000 schedules) panics, so that a
// misspelt name does not pass for a fault that survives. [RunFaults] is the body of a TestMutants. In the default build mutant is a function that returns
// false, inlines, and takes the branch with it.
//
// # Strategies
//
// [Cover] chooses for programs of shipped code, and fails those that are explored less than all others. [Exhaustive]
// visits every schedule with at most so many preemptions, [PCT] and [Uniform] sample, [Replay] repeats. A preemption is
// a switch away from a thread that could have gone on and did not yield; draining a store buffer, a timer, a tick of the
// clock and an interrupt of a heavy fence are choices that cost nothing.
//
// The search remembers points instead of partial orders: see [Reduction] and the comment at treeSearch for the
// argument. Two points are the same for ByHistory if every thread has done the same and has read from the same
// writes, and if every word was written in the same order: then memory, buffers, and everything that threads
// computed are equal, plain memory included, because its accesses are ordered by the same reads. A point also
// includes who would go on without a preemption and how many preemptions are left. Under ByHistory, loads of words that
// nobody writes are no scheduling points if Setup has named them: see still.go. reduce_test.go compares outcomes
// and verdicts with those of the full search, on fixed and on random programs.
//
// # Oracles
//
// Program.Check after every step, Program.Final when all is quiet; deadlock, which is what a lost wake-up becomes
// when every thread is finite: nobody can run, every buffer is empty, no timer is pending, and somebody has not
// ended; livelock: too many steps, or everybody spins on words that nobody writes; [History] with Linearizable;
// poison; misuse of parkers, pins, mutexes.
//
// # Cost mode
//
// [RunCosted] runs threads in simulated time instead: no schedules are explored, the thread with the least clock goes
// first, and each operation takes as long as its cache line needs to come from where it is, on the [Machine] that the
// program names. The words, Pause, Pin, Nanotime, Parker and Atomically are the same, and so is the code under test; see
// cost.go and line.go. [Work], [Elapsed], [BackOff] and [Prefetch64] are for such programs.
package sim
