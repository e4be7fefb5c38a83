//go:build gc && go1.26 && !go1.28 && !purego

#include "textflag.h"

// func cas(p *uint32, old, new uint32) bool
//	if *p == old { *p = new; return true }; return false		sequentially consistent
TEXT ·cas(SB), NOSPLIT, $0-17
	MOVQ	p+0(FP), BX
	MOVL	old+8(FP), AX
	MOVL	new+12(FP), CX
	LOCK
	CMPXCHGL	CX, 0(BX)
	SETEQ	ret+16(FP)
	RET
