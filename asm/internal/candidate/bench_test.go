//go:build (amd64 || arm64) && gc && !purego

package candidate_test

import (
	"sync/atomic"
	"testing"

	"github.com/hqsync/hqsync/asm/internal/beside"
	"github.com/hqsync/hqsync/asm/internal/candidate"
)

var (
	word uint32
	was  bool
)

func BenchmarkCompareAndSwap32(b *testing.B) {
	word = 1
	beside.Run(b, "atomic.CompareAndSwap",
		func(n int) {
			for range n {
				was = candidate.CompareAndSwap32(&word, 1, 1)
			}
		},
		func(n int) {
			for range n {
				was = atomic.CompareAndSwapUint32(&word, 1, 1)
			}
		})
}
