//go:build !(amd64 && gc && !purego && !race && !sim)

package topology

import (
	"runtime"
	"testing"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

func TestEachPAsksTheKernelOnceInManyCalls(t *testing.T) {
	if !rt.Pinnable {
		t.Skip("the portable runtime does not tell the number of a P: every call asks the kernel")
	}
	if _, _, ok := asm.CPUNode(); !ok {
		t.Skip("this system does not tell the CPU")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	slot := &perPs[0]
	const marked = 1<<perPBits - 2 // a CPU that does not exist
	slot.state.Store(marked | 7<<perPBits | 10*perPCall)
	for i := range 10 {
		if cpu, node, ok := rememberedCPUNode(); cpu != marked || node != 7 || !ok {
			t.Fatalf("call %d: CPU %d, node %d, %v", i, cpu, node, ok)
		}
	}
	if cpu, _, ok := rememberedCPUNode(); cpu == marked || !ok {
		t.Errorf("the 11th call still has the old answer")
	}
	if left := slot.state.Load() / perPCall; left != refreshAfter-1 {
		t.Errorf("the new answer serves %d more calls, want %d", left, refreshAfter-1)
	}
}
