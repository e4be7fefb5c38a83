package asm

// Ticks reads the CPU's counter of time: RDTSC on amd64, CNTVCT_EL0 on arm64,
// nanoseconds of the runtime's monotonic clock elsewhere. It is meant for spin
// deadlines and for gaps that tell that the thread was off its CPU.
//
// The reading is not ordered with the loads and stores around it, and the
// counters of two CPUs may differ a little: compare int64(later-earlier), and
// take a negative difference for zero.
func Ticks() uint64 { return ticks() }

// TicksPerMicrosecond returns the rate of [Ticks], rounded to a whole number
// and never 0.
//
// On arm64 and in the generic build the rate is known. On amd64 the first call
// measures it for 20 microseconds, to within about one per cent, and a call ten
// milliseconds later or more settles it; where the runtime's clock moves in steps
// of milliseconds, as on Windows, it is 1000 until a call one second later. It starts no goroutine and no timer,
// opens no file, allocates nothing, and may be called while pinned.
func TicksPerMicrosecond() uint64 { return ticksPerMicrosecond() }
