//go:build gc && !purego

package candidate_test

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/asm/internal/beside"
	"github.com/hqsync/hqsync/asm/internal/candidate"
)

// The call against the inlined form of package asm.
func BenchmarkStoreRelease32(b *testing.B) {
	beside.Run(b, "asm.StoreRelease32",
		func(n int) {
			for range n {
				candidate.StoreRelease32(&word, 1)
			}
		},
		func(n int) {
			for range n {
				asm.StoreRelease32(&word, 1)
			}
		})
}

// The unlock of a lock whose owner bit has a byte of its own, with the look at
// the rest of the word that must follow, against the add that returns it. The
// look needs a fence before it, and meets a store narrower than itself.
func BenchmarkStoreRelease8(b *testing.B) {
	owner := (*uint8)(unsafe.Pointer(&word))
	beside.Run(b, "atomic.Add",
		func(n int) {
			for range n {
				candidate.StoreRelease8(owner, 0)
				asm.Fence()
				was = atomic.LoadUint32(&word) != 0
			}
		},
		func(n int) {
			for range n {
				was = atomic.AddUint32(&word, 0) != 0
			}
		})
}

func BenchmarkTestAndSetBit32(b *testing.B) {
	beside.Run(b, "atomic.Or",
		func(n int) {
			for range n {
				was = candidate.TestAndSetBit32(&word, 3)
			}
		},
		func(n int) {
			for range n {
				was = atomic.OrUint32(&word, 1<<3)&(1<<3) != 0
			}
		})
}

func BenchmarkMemoryFence(b *testing.B) {
	beside.Run(b, "asm.Fence",
		func(n int) {
			for range n {
				candidate.MemoryFence()
			}
		},
		func(n int) {
			for range n {
				asm.Fence()
			}
		})
}

// A word handed to and fro between two goroutines, waited for by the
// instruction or by PAUSE.
func BenchmarkWaits(b *testing.B) {
	for _, w := range waits {
		b.Run(w.name, func(b *testing.B) {
			if !w.supported() {
				b.Skipf("this CPU has no %s", w.name)
			}
			beside.Run(b, "PAUSE",
				handOver(func(p *uint32, v uint32) {
					for w.wait(p, v, 30_000) == v {
					}
				}),
				handOver(func(p *uint32, v uint32) {
					for asm.WaitWhileEqual32(p, v, 1000) == v {
					}
				}))
		})
	}
}

func handOver(wait func(p *uint32, v uint32)) func(n int) {
	return func(n int) {
		shared := new([48]uint32) // the middle word shares its line with nothing else
		p := &shared[24]
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint32(n) {
				wait(p, 2*i)
				asm.StoreRelease32(p, 2*i+2)
			}
		}()
		for i := range uint32(n) {
			asm.StoreRelease32(p, 2*i+1)
			wait(p, 2*i+1)
		}
		<-done
	}
}
