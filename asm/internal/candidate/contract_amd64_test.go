//go:build gc && !purego

package candidate_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/asm/internal/candidate"
	"github.com/hqsync/hqsync/asm/internal/x86"
	"github.com/hqsync/hqsync/internal/locktest"
)

func TestStoreRelease(t *testing.T) {
	words := [3]uint32{before, oldWord, after}
	candidate.StoreRelease32(&words[1], newWord)
	if want := [3]uint32{before, newWord, after}; words != want {
		t.Errorf("32 bits: left %#x, want %#x", words, want)
	}
	bytes := [3]uint8{0x1a, 0x2b, 0x3c}
	candidate.StoreRelease8(&bytes[1], 0xd4)
	if want := [3]uint8{0x1a, 0xd4, 0x3c}; bytes != want {
		t.Errorf("8 bits: left %#x, want %#x", bytes, want)
	}
}

func TestTestAndSetBit32(t *testing.T) {
	for _, bit := range []uint32{0, 1, 17, 31, 32, 63, 1 << 31} {
		words := [3]uint32{before, 0, after}
		for _, was := range []bool{false, true} {
			if got := candidate.TestAndSetBit32(&words[1], bit); got != was {
				t.Errorf("bit %d was set: %t, want %t", bit, got, was)
			}
			if want := [3]uint32{before, 1 << (bit % 32), after}; words != want {
				t.Errorf("bit %d: left %#x, want %#x", bit, words, want)
			}
		}
	}
	candidate.MemoryFence()
}

// waits are the wait instructions that this CPU might have.
var waits = []struct {
	name      string
	supported func() bool
	wait      func(p *uint32, v uint32, ticks uint64) uint32
}{
	{"UMWAIT", x86.HasWAITPKG, candidate.WaitUMWAIT32},
	{"MWAITX", x86.HasMONITORX, candidate.WaitMWAITX32},
	{"TPAUSE", x86.HasWAITPKG, func(p *uint32, v uint32, ticks uint64) uint32 {
		for deadline := asm.Ticks() + ticks; ; candidate.TimedPause(200) {
			seen := asm.LoadAcquire32(p)
			if seen != v || int64(asm.Ticks()-deadline) >= 0 {
				return seen
			}
		}
	}},
}

// A wait keeps its P, and stops for no collection: another has to end it.
func TestWaits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	locktest.KeepWorldRunning(t)
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			if !w.supported() {
				t.Skipf("this CPU has no %s", w.name)
			}
			word := uint32(oldWord)
			millisecond := 1000 * asm.TicksPerMicrosecond()
			if got := w.wait(&word, newWord, 1<<40); got != oldWord {
				t.Errorf("different: returned %#x, word is %#x", got, word)
			}
			start := time.Now()
			if got := w.wait(&word, oldWord, 10*millisecond); got != oldWord {
				t.Errorf("equal: returned %#x, word is %#x", got, word)
			}
			if d := time.Since(start); d < 9*time.Millisecond {
				t.Errorf("gave up after %v, want 10 ms", d)
			}
			time.AfterFunc(5*time.Millisecond, func() { asm.StoreRelease32(&word, newWord) })
			if got := w.wait(&word, oldWord, 10_000*millisecond); got != newWord {
				t.Errorf("returned %#x after the word changed to %#x", got, uint32(newWord))
			}
		})
	}
}
