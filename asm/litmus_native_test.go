//go:build (amd64 || arm64) && gc && !purego && !race && !sim

package asm

import "testing"

// Store buffering: each side stores to its word, then loads the other's. With a
// fence between, at least one must see the other's store. The loads are plain:
// on arm64 an acquiring load would not pass a releasing store anyway.

func storeBuffering(left, right func()) litmus {
	return litmus{
		left: func(c *cell) {
			StoreRelease32(&c.x.word, 1)
			left()
			c.r0 = c.y.word
		},
		right: func(c *cell) {
			StoreRelease32(&c.y.word, 1)
			right()
			c.r1 = c.x.word
		},
		forbidden: func(c *cell) bool { return c.r0 == 0 && c.r1 == 0 },
	}
}

func nothing() {}

func TestLitmusSB_Fence(t *testing.T) {
	forbid(t, storeBuffering(Fence, Fence), storeBuffering(nothing, nothing))
}

// Message passing between two adjacent words on two cache lines. The compiler
// merges the two plain stores of the control into one, and the hardware shows
// the upper half of that before the lower: a plain store is no release.
func TestLitmusMP_StoresNotMerged(t *testing.T) {
	across := func(write func(p *splitPair)) litmus {
		l := messagePassing(nil, nil)
		l.left = func(c *cell) { write(&c.split) }
		l.right = func(c *cell) { receive(c, &c.split.data, &c.split.flag, readPlain) }
		return l
	}
	forbid(t,
		across(func(p *splitPair) { p.data = 1; StoreRelease32(&p.flag, 1) }),
		across(func(p *splitPair) { p.data = 1; p.flag = 1 }))
}
