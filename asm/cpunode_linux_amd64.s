//go:build gc && !purego && !race && !sim

#include "textflag.h"

// func rdpid() (word uint32, ok bool)
//
//	return TSC_AUX, true
TEXT ·rdpid(SB), NOSPLIT, $0-5
	RDPID AX
	MOVL AX, word+0(FP)
	MOVB $1, ok+4(FP)
	RET

// func rdtscp() (word uint32, ok bool)
//
//	return TSC_AUX, true
TEXT ·rdtscp(SB), NOSPLIT, $0-5
	RDTSCP
	MOVL CX, word+0(FP)
	MOVB $1, ok+4(FP)
	RET

// func lsl() (word uint32, ok bool)
//
//	return limit of segment 0x7b, whether the segment exists
TEXT ·lsl(SB), NOSPLIT, $0-5
	XORL BX, BX
	MOVL $0x7b, AX
	LSLL AX, BX
	MOVL BX, word+0(FP)
	SETEQ ok+4(FP)
	RET
