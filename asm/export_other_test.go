//go:build !(arm64 && gc && !purego && !race && !sim)

package asm

func otherBodies() []Body { return nil }
