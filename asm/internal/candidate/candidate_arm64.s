//go:build gc && !purego

#include "textflag.h"

// func CompareAndSwap32(p *uint32, old, new uint32) (swapped bool)
TEXT ·CompareAndSwap32(SB), NOSPLIT, $0-17
	MOVD p+0(FP), R0
	MOVWU old+8(FP), R1
	MOVWU new+12(FP), R2
#ifndef GOARM64_LSE
	MOVBU ·hasLSE(SB), R4
	CBZ R4, exclusive
#endif
	MOVW R1, R3
	CASAW R3, (R0), R2
	CMPW R1, R3
	CSET EQ, R0
	MOVB R0, swapped+16(FP)
	RET
#ifndef GOARM64_LSE

exclusive:
	LDAXRW (R0), R3
	CMPW R1, R3
	BNE failed
	STXRW R2, (R0), R4
	CBNZ R4, exclusive
	MOVD $1, R0
	MOVB R0, swapped+16(FP)
	RET

failed:
	MOVB ZR, swapped+16(FP)
	RET
#endif
