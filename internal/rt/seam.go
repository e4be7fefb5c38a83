//go:build !sim

package rt

import "sync/atomic"

// The names through which this package reaches the scheduler and shared memory.
// seam_sim.go has the simulator's.
type (
	atomicUint32 = atomic.Uint32
	sleep        = realSleep
)

// A Parker puts one goroutine at a time to sleep. The zero value is ready. It
// must live on the heap and must not be copied while in use.
//
// One wait is: Prepare; make the Parker findable; Park. Whoever unlinks it
// calls Unpark exactly once. Kick may come from anywhere at any time.
type Parker = machine

func pin() int           { return realPin() }
func unpin()             { realUnpin() }
func nanotime() int64    { return realNanotime() }
func cputicks() int64    { return realCputicks() }
func canSpin(i int) bool { return realCanSpin(i) }
func random() uint32     { return realRandom() }
func goyield()           { realGoyield() }
func fatal(msg string)   { realFatal(msg) }
func throw(msg string)   { realThrow(msg) }

// mutant is where the model checker's builds have seeded faults.
func mutant(string) bool { return false }

//go:norace
func storePlain(word *atomicUint32, v uint32) { realStorePlain(word, v) }

//go:norace
func (p *machine) suspend(reason Reason, skip int) { p.realSuspend(reason, skip) }

//go:norace
func (p *machine) resume(skip int) { p.realResume(skip + 1) }
