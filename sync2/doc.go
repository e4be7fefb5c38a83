// Package sync2 replaces package sync by changing one import:
//
//	import sync "github.com/hqsync/hqsync/sync2"
//
// Mutex, RWMutex, Cond and WaitGroup are its own; their goroutines park in the
// process's parking table (package parking). Locker, Once, OnceFunc, OnceValue,
// OnceValues, Pool and Map are those of package sync. Sizes, zero values, fatal
// errors, panics, wait reasons in goroutine dumps, profiles and memory ordering
// are as in package sync, and so are the method sets, with additions:
// LockContext, TryLockFor, RLockContext, TryRLockFor, Downgrade, WaitContext, and
// Do, which runs a function under a Mutex. [Tunables] say how goroutines wait.
//
// # Differences from sync
//
//   - A *sync.Mutex and a *sync2.Mutex are different types: two modules that
//     pass one to each other have to change their imports together.
//   - The goroutine leak profile does not report goroutines that are blocked on
//     these types: the runtime looks for its own records. It never reports a
//     goroutine falsely because of them.
//   - RWMutex is aligned to 8 bytes on 64-bit machines, where package sync's is to
//     4. A surplus RUnlock while readers are counted by P is fatal at the latest
//     when a writer next looks at the count, not at once.
//   - Cond.L must not be replaced while goroutines are waiting.
//   - In a synctest bubble every WaitGroup.Wait and Cond.Wait blocks durably,
//     also on a WaitGroup of outside, and the runtime's checks for uses of one
//     from several bubbles are not made.
//   - On Go 1.27 contention on these types does not show in the mutex profile,
//     whose hook that release removed. The block profile has it.
//
// # Build tags
//
//	purego      no assembly and no runtime hooks; also chosen by itself for an
//	            unknown Go version, compiler or architecture. Goroutine dumps,
//	            profiles and traces then show the channel or the sync.Mutex that
//	            a goroutine waits for inside.
//	sync2_std   the four types wrap those of package sync: for an A/B test, and
//	            the way back for a service that uses the additions.
package sync2
