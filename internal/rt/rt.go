package rt

// CanSpin reports whether the runtime thinks that round i (from 0) of spinning
// can help: several Ps, idle work elsewhere, an empty local run queue.
func CanSpin(i int) bool { return canSpin(i) }

// Pin forbids preemption of the calling goroutine and returns the number of
// its P, which it keeps until Unpin. Pins nest. It does not stop the operating
// system from taking the thread away. Where [Pinnable] is false it does nothing.
func Pin() int { return pin() }

// Unpin undoes one Pin.
func Unpin() { unpin() }

// Nanotime returns a monotonic time in nanoseconds. It is never 0.
func Nanotime() int64 { return nanotime() }

// Cputicks returns the unit that block and mutex profiles count in.
func Cputicks() int64 { return cputicks() }

// Rand returns 32 cheap random bits.
func Rand() uint32 { return random() }

// Yield puts the calling goroutine at the tail of the local run queue and runs
// the next one, which is the one most recently readied by this P.
func Yield() { goyield() }

// Fatal ends the process as package sync does after misuse: "fatal error: msg"
// with the caller's stack, exit status 2. It cannot be recovered.
func Fatal(msg string) { fatal(msg) }

// Throw ends the process because this module's own state is corrupt. It prints
// the runtime's frames too.
func Throw(msg string) { throw(msg) }
