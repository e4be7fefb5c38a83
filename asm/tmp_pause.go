package asm

func Pause(n uint32) {
	for range n {
	}
}
