//go:build gc && go1.26 && !go1.28 && !purego

#include "textflag.h"

// func cas(p *uint32, old, new uint32) bool
//	if *p == old { *p = new; return true }; return false		acquire and release
// Exclusive load and store rather than CASAL: right on every ARMv8, and only
// on the way into a park.
TEXT ·cas(SB), NOSPLIT, $0-17
	MOVD	p+0(FP), R0
	MOVW	old+8(FP), R1
	MOVW	new+12(FP), R2
again:
	LDAXRW	(R0), R3
	CMPW	R1, R3
	BNE	done
	STLXRW	R2, (R0), R4
	CBNZ	R4, again
done:
	CSET	EQ, R0
	MOVB	R0, ret+16(FP)
	RET
