package asm

import "unsafe"

// alignedCells returns cells that start on a cache line.
func alignedCells(n int) []cell {
	size := unsafe.Sizeof(cell{})
	memory := make([]byte, uintptr(n)*size+64)
	start := -uintptr(unsafe.Pointer(&memory[0])) & 63
	return unsafe.Slice((*cell)(unsafe.Pointer(&memory[start])), n)
}
