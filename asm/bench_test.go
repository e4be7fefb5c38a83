package asm_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/asm/internal/beside"
	"github.com/hqsync/hqsync/internal/rt"
)

var (
	word32 uint32
	word64 uint64
	sink32 uint32
	sink64 uint64
)

func BenchmarkStoreRelease32(b *testing.B) {
	beside.Run(b, "atomic.Store",
		func(n int) {
			for range n {
				asm.StoreRelease32(&word32, 1)
			}
		},
		func(n int) {
			for range n {
				atomic.StoreUint32(&word32, 1)
			}
		})
}

func BenchmarkStoreRelease64(b *testing.B) {
	beside.Run(b, "atomic.Store",
		func(n int) {
			for range n {
				asm.StoreRelease64(&word64, 1)
			}
		},
		func(n int) {
			for range n {
				atomic.StoreUint64(&word64, 1)
			}
		})
}

// The store as the unlock of a test-and-set lock.
func BenchmarkStoreRelease32Unlock(b *testing.B) {
	word32 = 0
	beside.Run(b, "atomic.Store",
		func(n int) {
			for range n {
				atomic.CompareAndSwapUint32(&word32, 0, 1)
				asm.StoreRelease32(&word32, 0)
			}
		},
		func(n int) {
			for range n {
				atomic.CompareAndSwapUint32(&word32, 0, 1)
				atomic.StoreUint32(&word32, 0)
			}
		})
}

func BenchmarkLoadAcquire32(b *testing.B) {
	beside.Run(b, "atomic.Load",
		func(n int) {
			for range n {
				sink32 = asm.LoadAcquire32(&word32)
			}
		},
		func(n int) {
			for range n {
				sink32 = atomic.LoadUint32(&word32)
			}
		})
}

func BenchmarkFence(b *testing.B) {
	beside.Run(b, "atomic.Add",
		func(n int) {
			for range n {
				asm.Fence()
			}
		},
		func(n int) {
			for range n {
				atomic.AddUint32(&word32, 0)
			}
		})
}

// A hint has no form in sync/atomic; the figure is its length.
func BenchmarkPause(b *testing.B) {
	beside.Run(b, "atomic.Load",
		func(n int) {
			for range n {
				asm.Pause(1)
			}
		},
		func(n int) {
			for range n {
				sink32 = atomic.LoadUint32(&word32)
			}
		})
}

// A wait of 30 hints that is given up, against the same loop in Go.
func BenchmarkWaitWhileEqual32(b *testing.B) {
	word32 = 0
	beside.Run(b, "atomic.Load+Pause",
		func(n int) {
			for range n {
				sink32 = asm.WaitWhileEqual32(&word32, 0, 30)
			}
		},
		func(n int) {
			for range n {
				for range 30 {
					if atomic.LoadUint32(&word32) != 0 {
						break
					}
					asm.Pause(1)
				}
			}
		})
}

func BenchmarkTicks(b *testing.B) {
	beside.Run(b, "nanotime",
		func(n int) {
			for range n {
				sink64 = asm.Ticks()
			}
		},
		func(n int) {
			for range n {
				sink64 = uint64(rt.Nanotime())
			}
		})
}

func BenchmarkTicksPerMicrosecond(b *testing.B) {
	asm.TicksPerMicrosecond()
	time.Sleep(20 * time.Millisecond)
	beside.Run(b, "nanotime",
		func(n int) {
			for range n {
				sink64 = asm.TicksPerMicrosecond()
			}
		},
		func(n int) {
			for range n {
				sink64 = uint64(rt.Nanotime())
			}
		})
	b.ReportMetric(float64(asm.TicksPerMicrosecond()), "ticks/µs")
}

// The heavy half of the pair; the cheap half saves one locked instruction.
func BenchmarkHeavyFence(b *testing.B) {
	if !asm.RegisterHeavyFence() {
		b.Skip("no HeavyFence in this build or on this kernel")
	}
	beside.Run(b, "atomic.Add",
		func(n int) {
			for range n {
				asm.HeavyFence()
			}
		},
		func(n int) {
			for range n {
				atomic.AddUint32(&word32, 0)
			}
		})
}
