package asm

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// onEachCPU binds the thread to each of its CPUs in turn.
func onEachCPU(t *testing.T, check func(t *testing.T, cpu int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Skipf("the thread cannot be bound to a CPU: %v", err)
	}
	defer unix.SchedSetaffinity(0, &own)
	checked := 0
	for cpu := range len(own) * 64 {
		if !own.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Logf("CPU %d: %v", cpu, err) // gone meanwhile
			continue
		}
		check(t, cpu)
		checked++
	}
	if checked == 0 {
		t.Skip("the thread could be bound to none of its CPUs")
	}
}

func TestCPUNodeWhereBound(t *testing.T) {
	if _, _, ok := getcpu(); !ok {
		t.Skip("this kernel has no getcpu to compare with")
	}
	onEachCPU(t, func(t *testing.T, cpu int) {
		wantCPU, wantNode, _ := getcpu()
		gotCPU, gotNode, ok := CPUNode()
		if !ok || gotCPU != wantCPU || gotNode != wantNode {
			t.Errorf("bound to CPU %d: CPUNode says %d, %d, %t, getcpu %d, %d",
				cpu, gotCPU, gotNode, ok, wantCPU, wantNode)
		}
		if int(gotCPU) != cpu {
			t.Errorf("bound to CPU %d, running on %d", cpu, gotCPU)
		}
	})
}
