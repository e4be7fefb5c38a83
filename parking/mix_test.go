package parking_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hqsync/hqsync/parking"
)

// Neighbouring words must spread over the buckets like random numbers, whatever
// the multiplier: 64 of them over 64 buckets, and below one bucket over the
// branches of its tree, which the next bits choose.
//
// The bound: of 64 random balls more than 12 are in one of 64 boxes in about one
// throw of 2^28. Without the second round one random multiplier in about 100
// fails, and nearly all of those whose step is next to nothing.
func TestMix_NeighboursSpread(t *testing.T) {
	const words, most = 64, 12
	for _, stride := range []uintptr{4, 8, 64} {
		t.Run(fmt.Sprintf("stride=%d", stride), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(stride)))
			for i := range effort(t, 40_000) {
				mult, first := rng.Uint64()|1, uintptr(0xc000000000+rng.Uint64N(1<<32)&^63)
				if i%4 == 0 { // a step that hardly shows in the upper bits of the product
					mult = mult>>14 | mult<<62 | 1
				}
				var buckets, branches [words]int
				for word := range uintptr(words) {
					x := parking.Mix(first+word*stride, mult)
					buckets[x>>58]++
					branches[x<<6>>58]++
				}
				for j := range words {
					if buckets[j] > most || branches[j] > most {
						t.Fatalf("multiplier %#x, from %#x: %d of %d words in one bucket, %d in one branch",
							mult, first, buckets[j], words, branches[j])
					}
				}
			}
		})
	}
}

// Two addresses must not have the same hash, or no resize could part them.
func TestMix_Bijection(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		mult := rng.Uint64() | 1
		addr := uintptr(rng.Uint64())
		if got := unmix(parking.Mix(addr, mult), mult); got != addr {
			t.Fatalf("multiplier %#x: %#x comes back as %#x", mult, addr, got)
		}
	}
}

// unmix is the inverse of Mix.
func unmix(x, mult uint64) uintptr {
	x *= inverse(0x9E3779B97F4A7C15)
	x ^= x >> 32
	return uintptr(x * inverse(mult))
}

// inverse returns the inverse of an odd number modulo 2^64, by Newton's method.
func inverse(odd uint64) uint64 {
	x := odd // right in the lowest 3 bits
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}
