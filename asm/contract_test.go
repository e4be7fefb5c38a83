package asm_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/locktest"
)

// onEachBody runs a contract on every implementation in this binary.
func onEachBody(t *testing.T, contract func(t *testing.T, body asm.Body)) {
	for _, body := range asm.Bodies {
		t.Run(body.Name, func(t *testing.T) { contract(t, body) })
	}
}

// Guarded words: a store of the wrong width or to the wrong address shows in a
// neighbour, a swapped operand in the value.
const (
	before32, old32, new32, after32 = 0x1a2b3c4d, 0x5e6f7081, 0x92a3b4c5, 0xd6e7f809
	before64, old64                 = 0x0102030405060708, 0x1112131415161718
	new64, after64                  = 0xf1e2d3c4b5a69788, 0x2122232425262728
)

func TestContractStoreRelease32(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		for i := range 3 {
			words := [5]uint32{before32, old32, old32, old32, after32}
			want := words
			want[1+i] = new32
			body.StoreRelease32(&words[1+i], new32)
			if words != want {
				t.Errorf("store to word %d left %#x, want %#x", 1+i, words, want)
			}
		}
	})
}

func TestContractStoreRelease64(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		words := new([3]uint64) // allocated, so 8-byte aligned on 32-bit CPUs too
		*words = [3]uint64{before64, old64, after64}
		body.StoreRelease64(&words[1], new64)
		if want := [3]uint64{before64, new64, after64}; *words != want {
			t.Errorf("store left %#x, want %#x", *words, want)
		}
	})
}

func TestContractLoadAcquire32(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		words := [3]uint32{before32, old32, after32}
		if got := body.LoadAcquire32(&words[1]); got != old32 {
			t.Errorf("load of %#x gave %#x", words, got)
		}
	})
}

func TestContractWaitWhileEqual32(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		for _, c := range []struct {
			name    string
			word, v uint32
			n       uint32
		}{
			{"different, no hint", old32, new32, 0},
			{"different", old32, new32, 3},
			{"equal, no hint", old32, old32, 0},
			{"equal, one hint", old32, old32, 1},
			{"equal, many hints", old32, old32, 1000},
			{"equal zero", 0, 0, 7},
			{"equal all ones", 1<<32 - 1, 1<<32 - 1, 7},
		} {
			words := [3]uint32{before32, c.word, after32}
			if got := body.WaitWhileEqual32(&words[1], c.v, c.n); got != c.word {
				t.Errorf("%s: returned %#x, word is %#x", c.name, got, c.word)
			}
			if want := [3]uint32{before32, c.word, after32}; words != want {
				t.Errorf("%s: changed the words to %#x", c.name, words)
			}
		}
	})
}

// With the largest bound the wait lasts minutes: it returns in time only if it
// sees the change. Meanwhile its P does nothing else, and stops for no collection.
func TestContractWaitWhileEqual32SeesChange(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	locktest.KeepWorldRunning(t)
	onEachBody(t, func(t *testing.T, body asm.Body) {
		word := new(uint32)
		body.StoreRelease32(word, old32)
		time.AfterFunc(5*time.Millisecond, func() { body.StoreRelease32(word, new32) })
		if got := body.WaitWhileEqual32(word, old32, 1<<32-1); got != new32 {
			t.Errorf("returned %#x after the word changed to %#x", got, uint32(new32))
		}
	})
}

// The hints are what takes the time: all of them if the wait is given up, next
// to none if the word differs, in whichever bit.
func TestContractHintsTakeTime(t *testing.T) {
	const many = 1 << 13
	onEachBody(t, func(t *testing.T, body asm.Body) {
		word := uint32(old32)
		wait := func(v, n uint32) func() {
			return func() { body.WaitWhileEqual32(&word, v, n) }
		}
		times := quickest(func() { body.Pause(many) }, wait(old32, many), func() { body.Pause(0) }, wait(old32, 0))
		pauses, given := times[0], times[1]
		if none := times[2]; pauses < 10*none {
			t.Errorf("%d pauses take %v, none %v", many, pauses, none)
		}
		if none := times[3]; given < 10*none {
			t.Errorf("a wait of %d hints takes %v, of none %v", many, given, none)
		}
		for bit := range 32 {
			if d := quickest(wait(old32^1<<bit, many))[0]; d > given/5 {
				t.Errorf("a wait on a word that differs in bit %d takes %v, on an equal one %v", bit, d, given)
			}
		}
		// WFET waits for the time of the hints, not for the hints.
		if body.Name != "wfet" && given < pauses*2/3 {
			t.Errorf("a wait of %d hints takes %v, that many pauses %v", many, given, pauses)
		}
	})
}

// quickest returns the shortest time that each takes. They take turns: what slows
// the machine down for a while slows all of them.
func quickest(fs ...func()) []time.Duration {
	best := slices.Repeat([]time.Duration{time.Hour}, len(fs))
	for range 15 {
		for i, f := range fs {
			start := time.Now()
			f()
			best[i] = min(best[i], time.Since(start))
		}
	}
	return best
}

func TestContractTicks(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		perMicrosecond := body.TicksPerMicro()
		if perMicrosecond == 0 {
			t.Fatal("a rate of 0 ticks per microsecond")
		}
		const span = 30 * time.Millisecond
		for try := 0; ; try++ {
			start, from := time.Now(), body.Ticks()
			time.Sleep(span)
			ticks, elapsed := body.Ticks()-from, time.Since(start)
			got := float64(ticks) / float64(body.TicksPerMicro()) * 1000 / float64(elapsed)
			if got > 0.97 && got < 1.03 {
				return
			}
			// The thread may have lost its CPU between two of the readings.
			if try == 5 {
				t.Fatalf("%d ticks at %d per µs in %v: %.3f of the clock's time",
					ticks, body.TicksPerMicro(), elapsed, got)
			}
		}
	})
}

func TestContractPrefetchNeverFaults(t *testing.T) {
	onEachBody(t, func(t *testing.T, body asm.Body) {
		words := [3]uint32{before32, old32, after32}
		for _, addr := range []uintptr{0, 1, uintptr(unsafe.Pointer(&words[1])), ^uintptr(0)} {
			body.PrefetchW(addr)
		}
		if want := [3]uint32{before32, old32, after32}; words != want {
			t.Errorf("changed the words to %#x", words)
		}
	})
	asm.PrefetchW(nil)
}

func TestNoOperationAllocates(t *testing.T) {
	var word32 uint32
	var word64 uint64
	for name, op := range map[string]func(){
		"StoreRelease32":      func() { asm.StoreRelease32(&word32, 1) },
		"StoreRelease64":      func() { asm.StoreRelease64(&word64, 1) },
		"LoadAcquire32":       func() { asm.LoadAcquire32(&word32) },
		"Fence":               func() { asm.Fence() },
		"Pause":               func() { asm.Pause(3) },
		"WaitWhileEqual32":    func() { asm.WaitWhileEqual32(&word32, 1, 3) },
		"Ticks":               func() { asm.Ticks() },
		"TicksPerMicrosecond": func() { asm.TicksPerMicrosecond() },
		"PrefetchW":           func() { asm.PrefetchW(unsafe.Pointer(&word32)) },
		"HeavyFence":          func() { asm.HeavyFence() },
		"HeavyFenceAvailable": func() { asm.HeavyFenceAvailable() },
		"RegisterHeavyFence":  func() { asm.RegisterHeavyFence() },
		"HeavyFenceLost":      func() { asm.HeavyFenceLost() },
		"CPUNode":             func() { asm.CPUNode() },
	} {
		if allocs := testing.AllocsPerRun(100, op); allocs != 0 {
			t.Errorf("%s allocates %v times", name, allocs)
		}
	}
}
