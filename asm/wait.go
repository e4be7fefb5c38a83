package asm

// Pause gives the CPU n hints that the caller spins: the thread sharing the
// core gets its resources, and the loop leaves without the penalty of a
// mispredicted memory order. A hint is not a time: PAUSE on amd64 takes a few
// cycles on some CPUs and over a hundred on others, ISB on arm64 is in between
// (BenchmarkPause prints it). Bound a spin by [Ticks].
//
// The goroutine cannot be preempted before the last hint, so n bounds what the
// caller adds to the time that stopping the world takes.
func Pause(n uint32) { pause(n) }

// WaitWhileEqual32 loads *p until the value differs from v, with a spin hint
// after each load that does not, and gives up after n hints. It returns the
// value loaded last, with acquire ordering; it is v if and only if the wait
// was given up. With n == 0 it is one load.
//
// On arm64 CPUs with FEAT_WFxT the CPU sleeps until the cache line of *p
// changes or the time of n hints (30 ns each) is over, in place of the hints.
// As in [Pause], the goroutine cannot be preempted meanwhile.
func WaitWhileEqual32(p *uint32, v, n uint32) uint32 { return waitWhileEqual32(p, v, n) }
