//go:build gc && !purego

#include "textflag.h"

// func StoreRelease32(p *uint32, v uint32)
TEXT ·StoreRelease32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

// func StoreRelease8(p *uint8, v uint8)
TEXT ·StoreRelease8(SB), NOSPLIT, $0-9
	MOVQ p+0(FP), AX
	MOVB v+8(FP), CX
	MOVB CX, (AX)
	RET

// func CompareAndSwap32(p *uint32, old, new uint32) (swapped bool)
TEXT ·CompareAndSwap32(SB), NOSPLIT, $0-17
	MOVQ p+0(FP), BX
	MOVL old+8(FP), AX
	MOVL new+12(FP), CX
	LOCK
	CMPXCHGL CX, (BX)
	SETEQ swapped+16(FP)
	RET

// func TestAndSetBit32(p *uint32, bit uint32) (was bool)
//
// The mask matters: BTS with a memory operand reaches beyond the word.
TEXT ·TestAndSetBit32(SB), NOSPLIT, $0-17
	MOVQ p+0(FP), AX
	MOVL bit+8(FP), CX
	ANDL $31, CX
	LOCK
	BTSL CX, (AX)
	SETCS was+16(FP)
	RET

// func MemoryFence()
TEXT ·MemoryFence(SB), NOSPLIT, $0-0
	MFENCE
	RET

// func TimedPause(ticks uint64)
//
//	TPAUSE C0.1 until TSC + ticks
TEXT ·TimedPause(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	ADDQ ticks+0(FP), AX
	MOVQ AX, DX
	SHRQ $32, DX
	MOVL $1, CX // C0.1
	TPAUSE CX
	RET

// func WaitUMWAIT32(p *uint32, v uint32, ticks uint64) uint32
//
//	deadline = TSC + ticks
//	for {
//		UMONITOR p            // armed before the load: no store is missed
//		seen = *p
//		if seen != v || TSC >= deadline {
//			return seen
//		}
//		UMWAIT C0.1 until deadline
//	}
TEXT ·WaitUMWAIT32(SB), NOSPLIT, $0-28
	MOVQ p+0(FP), DI
	MOVL v+8(FP), SI
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	ADDQ ticks+16(FP), AX
	MOVQ AX, R8

loop:
	UMONITOR DI
	MOVL (DI), R9
	CMPL R9, SI
	JNE done
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	CMPQ AX, R8
	JCC done
	MOVQ R8, AX
	MOVQ R8, DX
	SHRQ $32, DX
	MOVL $1, CX // C0.1
	UMWAIT CX
	JMP loop

done:
	MOVL R9, ret+24(FP)
	RET

// func WaitMWAITX32(p *uint32, v uint32, ticks uint64) uint32
//
// As above; MWAITX counts down from a relative time of 32 bits.
TEXT ·WaitMWAITX32(SB), NOSPLIT, $0-28
	MOVQ p+0(FP), DI
	MOVL v+8(FP), SI
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	ADDQ ticks+16(FP), AX
	MOVQ AX, R8

loop:
	MOVQ DI, AX
	XORL CX, CX
	XORL DX, DX
	BYTE $0x0f; BYTE $0x01; BYTE $0xfa // MONITORX
	MOVL (DI), R9
	CMPL R9, SI
	JNE done
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ R8, BX
	SUBQ AX, BX
	JLE done // the difference is signed: the counters of two CPUs may differ
	MOVL $0xffffffff, CX
	CMPQ BX, CX
	CMOVQHI CX, BX
	MOVL $0xf0, AX // stay in C0
	MOVL $2, CX // with the timer
	BYTE $0x0f; BYTE $0x01; BYTE $0xfb // MWAITX
	JMP loop

done:
	MOVL R9, ret+24(FP)
	RET
