//go:build gc && !purego && !race && !sim

package asm

import "testing"

// Each reader that this CPU has agrees with the kernel on each CPU.
func TestWordReaders(t *testing.T) {
	for _, r := range wordReaders {
		t.Run(r.name, func(t *testing.T) {
			if !r.supported() {
				t.Skipf("this CPU has no %s", r.name)
			}
			onEachCPU(t, func(t *testing.T, cpu int) {
				wantCPU, wantNode, _ := getcpu()
				if word, ok := r.read(); !ok || word != wantNode<<12|wantCPU {
					t.Errorf("CPU %d: %#x, %t, want node %d, cpu %d", cpu, word, ok, wantNode, wantCPU)
				}
			})
		})
	}
}

// A reader that contradicts the kernel is passed over.
func TestWordReaderDisagrees(t *testing.T) {
	for name, read := range map[string]func() (uint32, bool){
		"always zero, on another node": func() (uint32, bool) { return 7 << 12, true },
		"no such segment":              func() (uint32, bool) { return 0, false },
	} {
		if agrees(read) {
			t.Errorf("%s: trusted", name)
		}
	}
}

func TestCPUNodeChoosesOnce(t *testing.T) {
	defer chosen.Store(chosen.Load())
	chosen.Store(chosenNone)
	CPUNode()
	first := chosen.Load()
	if first == chosenNone || first > chosenGetcpu {
		t.Fatalf("chose %d", first)
	}
	if first != chosenGetcpu {
		t.Logf("reads by %s", wordReaders[first-1].name)
	}
	for choice := chosenNone + 1; choice <= int(chosenGetcpu); choice++ {
		if choice != int(chosenGetcpu) && !wordReaders[choice-1].supported() {
			continue
		}
		chosen.Store(uint32(choice))
		onEachCPU(t, func(t *testing.T, cpu int) {
			if got, _, ok := CPUNode(); !ok || int(got) != cpu {
				t.Errorf("choice %d on CPU %d: %d, %t", choice, cpu, got, ok)
			}
		})
	}
}

// The readers beside each other; wordReaders is in the order of the outcome.
func BenchmarkCPUNodeReaders(b *testing.B) {
	for _, r := range wordReaders {
		b.Run(r.name, func(b *testing.B) {
			if !r.supported() {
				b.Skipf("this CPU has no %s", r.name)
			}
			for b.Loop() {
				r.read()
			}
		})
	}
}
