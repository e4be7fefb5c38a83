//go:build gc && !purego && !race && !sim

#include "textflag.h"

// func fence()
//
//	DMB ISH
TEXT ·fence(SB), NOSPLIT, $0-0
	DMB $11
	RET

// func pause(n uint32)
//
//	for ; n != 0; n-- {
//		ISB
//	}
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVWU n+0(FP), R0
	CBZ R0, done

loop:
	ISB $15
	SUB $1, R0
	CBNZ R0, loop

done:
	RET

// func waitWhileEqual32ISB(p *uint32, v, n uint32) uint32
//
//	for {
//		seen = load-acquire *p
//		if seen != v || n == 0 {
//			return seen
//		}
//		n--
//		ISB
//	}
TEXT ·waitWhileEqual32ISB(SB), NOSPLIT, $0-20
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVWU n+12(FP), R2

loop:
	LDARW (R0), R3
	CMPW R1, R3
	BNE done
	CBZ R2, done
	SUB $1, R2
	ISB $15
	B loop

done:
	MOVW R3, ret+16(FP)
	RET

// func waitWhileEqual32WFET(p *uint32, v, n uint32) uint32
//
//	deadline = CNTVCT + n*CNTFRQ/2^25     // 2^-25 s = 30 ns
//	for {
//		seen = load-acquire-exclusive *p   // arms the monitor
//		if seen != v || CNTVCT >= deadline {
//			return seen
//		}
//		WFET deadline                      // until the monitor is lost or the deadline
//	}
//
// A store between the load and WFET has already lost the monitor and set the
// event register, so WFET returns at once: no change is slept over. The product
// fits: n has 32 bits and CNTFRQ, by the architecture, 32.
TEXT ·waitWhileEqual32WFET(SB), NOSPLIT, $0-20
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVWU n+12(FP), R2
	MRS CNTFRQ_EL0, R3
	MRS CNTVCT_EL0, R4
	MUL R3, R2, R2
	ADD R2>>25, R4, R4

loop:
	LDAXRW (R0), R5
	CMPW R1, R5
	BNE done
	MRS CNTVCT_EL0, R6
	CMP R4, R6
	BHS done
	WORD $0xd5031004 // WFET R4, which the assembler does not know
	B loop

done:
	MOVW R5, ret+16(FP)
	RET

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT, $0-8
	MRS CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func ticksPerSecond() uint64
TEXT ·ticksPerSecond(SB), NOSPLIT, $0-8
	MRS CNTFRQ_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func prefetchW(addr uintptr)
//
//	PRFM PSTL1KEEP, [addr]
TEXT ·prefetchW(SB), NOSPLIT, $0-8
	MOVD addr+0(FP), R0
	PRFM (R0), PSTL1KEEP
	RET

// func isar2() uint64
TEXT ·isar2(SB), NOSPLIT, $0-8
	WORD $0xd5380640 // MRS ID_AA64ISAR2_EL1, R0
	MOVD R0, ret+0(FP)
	RET
