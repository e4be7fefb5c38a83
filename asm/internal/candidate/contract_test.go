//go:build (amd64 || arm64) && gc && !purego

package candidate_test

import (
	"testing"

	"github.com/hqsync/hqsync/asm/internal/candidate"
)

const before, oldWord, newWord, after = 0x1a2b3c4d, 0x5e6f7081, 0x92a3b4c5, 0xd6e7f809

func TestCompareAndSwap32(t *testing.T) {
	for _, c := range []struct {
		name    string
		word    uint32
		swapped bool
		left    uint32
	}{
		{"equal", oldWord, true, newWord},
		{"differs in the top bit", oldWord ^ 1<<31, false, oldWord ^ 1<<31},
		{"is the new value already", newWord, false, newWord},
	} {
		words := [3]uint32{before, c.word, after}
		swapped := candidate.CompareAndSwap32(&words[1], oldWord, newWord)
		if want := [3]uint32{before, c.left, after}; swapped != c.swapped || words != want {
			t.Errorf("%s: %t, left %#x; want %t, %#x", c.name, swapped, words, c.swapped, want)
		}
	}
}
