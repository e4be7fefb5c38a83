//go:build gc && !purego && !race && !sim

#include "textflag.h"

// func pause(n uint32)
//
//	for ; n != 0; n-- {
//		PAUSE
//	}
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVL n+0(FP), CX
	TESTL CX, CX
	JEQ done

loop:
	PAUSE
	DECL CX
	JNE loop

done:
	RET

// func waitWhileEqual32(p *uint32, v, n uint32) uint32
//
//	for {
//		seen = *p                  // acquire, as every load on amd64
//		if seen != v || n == 0 {
//			return seen
//		}
//		n--
//		PAUSE
//	}
TEXT ·waitWhileEqual32(SB), NOSPLIT, $0-20
	MOVQ p+0(FP), BX
	MOVL v+8(FP), DX
	MOVL n+12(FP), CX

loop:
	MOVL (BX), AX
	CMPL AX, DX
	JNE done
	SUBL $1, CX
	JCS done // there was no hint left
	PAUSE
	JMP loop

done:
	MOVL AX, ret+16(FP)
	RET

// func ticks() uint64
//
//	return EDX<<32 | EAX of RDTSC
TEXT ·ticks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func prefetchW(addr uintptr)
//
//	PREFETCHW (addr)
TEXT ·prefetchW(SB), NOSPLIT, $0-8
	MOVQ addr+0(FP), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	RET
