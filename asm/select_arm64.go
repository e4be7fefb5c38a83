//go:build gc && !purego && !race && !sim

package asm

import "golang.org/x/sys/cpu"

// hasWFxT reports whether WFET may be executed. The register that tells may be
// read from user space only where the kernel emulates the access, and that the
// kernel tells in the auxiliary vector, which the runtime has kept: no file.
var hasWFxT = cpu.ARM64.HasCPUID && isar2()&0xf >= 2

// isar2 is ID_AA64ISAR2_EL1; FEAT_WFxT is its lowest field.
func isar2() uint64

// The stores and the load are sync/atomic's: the compiler makes STLR and LDAR
// of them, inline, and those are a release and an acquire.

func storeRelease32(p *uint32, v uint32) { storeRelease32Generic(p, v) }

func storeRelease64(p *uint64, v uint64) { storeRelease64Generic(p, v) }

func loadAcquire32(p *uint32) uint32 { return loadAcquire32Generic(p) }

// fence is DMB ISH. An atomic add, even LDADDAL, would not do: a later load may
// be satisfied between its own load and its own store.
func fence()

// pause executes ISB n times. YIELD does nothing on most CPUs.
func pause(n uint32)

func waitWhileEqual32(p *uint32, v, n uint32) uint32 {
	if hasWFxT {
		return waitWhileEqual32WFET(p, v, n)
	}
	return waitWhileEqual32ISB(p, v, n)
}

// waitWhileEqual32ISB has the contract of WaitWhileEqual32; its hint is ISB.
//
//go:noescape
func waitWhileEqual32ISB(p *uint32, v, n uint32) uint32

// waitWhileEqual32WFET has the contract of WaitWhileEqual32. It arms the
// exclusive monitor on *p and sleeps until it is lost or n times 30 ns are over.
// It needs FEAT_WFxT: a WFE without a deadline sleeps until the kernel's event
// stream wakes it, 100 µs at best.
//
//go:noescape
func waitWhileEqual32WFET(p *uint32, v, n uint32) uint32

// ticks is CNTVCT_EL0.
func ticks() uint64

// ticksPerSecond is CNTFRQ_EL0.
func ticksPerSecond() uint64

// ticksPerMicrosecond rounds; counters slower than 1 MHz count as 1 MHz.
func ticksPerMicrosecond() uint64 { return max(1, (ticksPerSecond()+500_000)/1_000_000) }

// prefetchW is PRFM PSTL1KEEP.
func prefetchW(addr uintptr)
