//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !sim

package asm

import (
	"sync/atomic"
	"testing"
)

// asymmetric is store buffering where only the right side fences, for both.
// Stores that miss the cache hold the left side's store back in its store
// buffer, long enough to show a fence that reaches only its caller.
func asymmetric(fence func()) litmus {
	l := storeBuffering(nothing, fence)
	bare := l.left
	l.before = func(c *cell) {
		for i := range c.clutter {
			atomic.StoreUint32(&c.clutter[i].word, 1)
		}
	}
	l.left = func(c *cell) {
		for i := range c.clutter {
			StoreRelease32(&c.clutter[i].word, 2)
		}
		bare(c)
	}
	return l
}

// forbidAsymmetric checks a fence for both sides. The control's fence reaches
// only the side that executes it.
func forbidAsymmetric(t *testing.T, fence func() bool) {
	t.Helper()
	failed := 0
	forbid(t, asymmetric(func() {
		if !fence() {
			failed++
		}
	}), asymmetric(Fence))
	if failed != 0 {
		t.Errorf("the fence was not executed %d times", failed)
	}
}

func TestLitmusSB_HeavyFence(t *testing.T) {
	if !RegisterHeavyFence() {
		t.Skip("this kernel offers no membarrier")
	}
	forbidAsymmetric(t, HeavyFence)
}

func TestLitmusSB_DrainByUnmap(t *testing.T) {
	if !unmapInterrupts() {
		t.Skip("this CPU or hypervisor does not interrupt other CPUs to unmap a page")
	}
	forbidAsymmetric(t, drainByUnmap)
}

func TestLitmusSB_DrainByVisit(t *testing.T) {
	forbidAsymmetric(t, drainByVisit)
}
