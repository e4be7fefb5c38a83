// Package asm gives locks what the CPU and the kernel have and neither the Go
// compiler nor sync/atomic offers: a store that is only a release, bounded waits
// with the CPU's own hint, a cheap clock, a fence that one thread executes for
// all of them, and the number of the CPU.
//
// It is small on purpose. The operations of sync/atomic are single inlined
// instructions, and a call of an assembly body costs more than most of them. So
// an operation is here only if the table justifies it against sync/atomic, and
// what was tried and lost is in the table too.
//
// # Builds
//
// amd64 and arm64 with the gc compiler get the native bodies. The tags purego
// and sim, the race detector (which does not see assembly) and every other CPU
// get the generic ones, written in Go on sync/atomic: the same contracts, never
// weaker. Both are compiled into every native test binary, and one table of
// contracts runs over both. Native loads and stores are as atomic as those of
// sync/atomic; p must be aligned to its size, as everywhere in Go.
//
// # Offered
//
//	operation            order               amd64                arm64                generic
//	StoreRelease32, 64   release             MOV, inlined         STLR, inlined        atomic.Store
//	LoadAcquire32        acquire             MOV, inlined         LDAR, inlined        atomic.Load
//	Fence                full                LOCK XADD, inlined   DMB ISH              atomic.Add
//	Pause                none                PAUSE                ISB                  empty loop
//	WaitWhileEqual32     acquire             MOV, PAUSE           LDAR, ISB or         atomic.Load, empty loop
//	                                                              LDAXR, WFET
//	Ticks                none                RDTSC                CNTVCT_EL0           nanotime
//	TicksPerMicrosecond  none                measured once        CNTFRQ_EL0           1000
//	PrefetchW            none                PREFETCHW            PRFM PSTL1KEEP       nothing
//	HeavyFence           full, all threads   membarrier(2)        membarrier(2)        unavailable
//	CPUNode              none                RDPID, LSL, RDTSCP   getcpu(2)            getcpu(2) or unavailable
//
// Why each is here, and the benchmark that prints it beside the form that it
// replaces, in one run and as a ratio. All are run by
//
//	go test ./asm -run '^$' -bench .
//
//	StoreRelease32, 64   On amd64 sync/atomic's store is an XCHG, which waits for
//	                     the store buffer. A release needs no more than a plain
//	                     store that the compiler leaves alone. On arm64
//	                     sync/atomic's store is the release store already.
//	                     -bench StoreRelease
//	LoadAcquire32        Nothing to gain: sync/atomic's load is the instruction on
//	                     both. It is the name for the other end of StoreRelease32.
//	                     -bench LoadAcquire32
//	Fence                sync/atomic has none. On amd64 any locked instruction is
//	                     one; on arm64 none is, LSE or not.
//	                     -bench Fence
//	Pause                sync/atomic has none; runtime.procyield means different
//	                     things in different releases, and is the runtime's own.
//	                     -bench Pause (the length of a hint)
//	WaitWhileEqual32     On arm64 load and wait must be one loop, since the load
//	                     arms the wait. On amd64 it is as fast as a loop of loads
//	                     and Pause, and the same call site serves both.
//	                     -bench WaitWhileEqual32
//	Ticks                time.Now and the runtime's clock scale and correct what
//	                     they read; a deadline of microseconds needs neither.
//	                     -bench Ticks
//	TicksPerMicrosecond  Comes with Ticks.
//	                     -bench TicksPerMicrosecond
//	PrefetchW            sync/atomic has none. A locked instruction starts its miss
//	                     late; the hint starts it while other work goes on.
//	                     -bench PrefetchW
//	HeavyFence           sync/atomic orders the thread that executes it. This one
//	                     lets the frequent side of a protocol go without a fence.
//	                     -bench HeavyFence (and what the other side saves)
//	CPUNode              The runtime does not tell; the system call does.
//	                     -bench CPUNode
//
// # Left out
//
// Those with a benchmark are assembled and tested in internal/candidate, where
//
//	go test ./asm/internal/candidate -bench .
//
// prints them beside what they would replace; they would pay on a machine where
// the ratio is clearly below 1.
//
//	CAS, add, and, or    The compiler inlines sync/atomic's. On arm64 it chooses
//	acquire-only or       between LSE and exclusives at run time, or at build time
//	release-only          by GOARM64, so there is nothing to add on either kind of
//	                      CPU. A call costs more than the weaker order saves.
//	                      -bench CompareAndSwap32
//	relaxed load, store,  As above. amd64 has no weaker load than the one that
//	LDAPR                 sync/atomic compiles to.
//	StoreRelease32 as a   Safe from the compiler like the inlined form, slower.
//	call                  -bench StoreRelease32
//	byte store (unlock    The rest of the word must be looked at after it: that
//	of an owner byte)     takes a fence, and the look stalls on the narrower store.
//	                      One add does all three. -bench StoreRelease8
//	16-bit exchange of    The lock word changes its tail together with its mode,
//	the tail              which takes a compare-and-swap of the whole word.
//	test and set bit      About what sync/atomic's Or takes, call included, and
//	                      the lock word's bits change together with others.
//	                      -bench TestAndSetBit32
//	MFENCE                Slower than a locked instruction, and stronger only for
//	                      memory that Go does not map. -bench MemoryFence
//	TPAUSE, UMWAIT        Assembled and gated by CPUID (WAITPKG), but no machine at
//	                      hand executes them, so nobody has seen them beat PAUSE.
//	                      -bench Waits
//	MWAITX                The same (MONITORX); hypervisors hide it. -bench Waits
//	WFE without deadline  Sleeps until the kernel's event stream ends it, 100 µs or
//	                      more: longer than a pinned goroutine may wait.
//	YIELD                 A no-op on most arm64 CPUs; ISB delays.
//	serialised RDTSC      A deadline does not care about a few instructions.
//	prefetch for reading  The load that would follow is the prefetch.
//	RTM, HLE              Switched off on most CPUs that have them.
//
// # Sources
//
// Ordering: Intel SDM volume 3, chapter 8.2; AMD APM volume 2, chapter 7; Arm
// ARM, chapter B2; and the Go memory model. The asymmetric fence follows
// membarrier(2). Forcing one through the page tables is what folly and the JVM did
// before that call; visiting each CPU is the toy implementation in Linux's RCU
// documentation. The CPU number in TSC_AUX and in a segment limit is what
// Linux's vDSO reads.
package asm
