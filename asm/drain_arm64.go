//go:build linux && !android && gc && !purego && !race && !sim

package asm

// unmapInterrupts is false on arm64: it broadcasts TLBI, which interrupts
// nobody and drains no store buffer.
func unmapInterrupts() bool { return false }
