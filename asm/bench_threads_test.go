package asm

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// onTwoCPUs runs left and right at the same time, each on a CPU of its own.
func onTwoCPUs(b *testing.B, left, right func()) {
	if runtime.NumCPU() < 2 || runtime.GOMAXPROCS(0) < 2 {
		b.Skip("two threads at the same time need two CPUs")
	}
	bound := func(side int, f func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer bindTo(side)()
		f()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		bound(1, right)
	}()
	bound(0, left)
	<-done
}

func median(turns []time.Duration, n int) float64 {
	slices.Sort(turns)
	return float64(turns[len(turns)/2]) / float64(n)
}

// Two threads hand a word to and fro; the wait is this package's, or a loop of
// loads without a hint.
func BenchmarkWaitWhileEqual32HandOver(b *testing.B) {
	var word line
	wait := func(v uint32) {
		for WaitWhileEqual32(&word.word, v, 1000) == v {
			yieldCPU()
		}
	}
	loop := func(v uint32) {
		for spins := 1; atomic.LoadUint32(&word.word) == v; spins++ {
			if spins%20_000 == 0 {
				yieldCPU()
			}
		}
	}
	const block = 500
	turns := b.N/block + 2
	at := func(turn, i int) uint32 { return uint32(turn*block+i) * 2 }
	how := func(turn int) func(v uint32) {
		if turn%2 == 0 {
			return wait
		}
		return loop
	}
	var spent [2][]time.Duration
	onTwoCPUs(b, func() {
		for turn := range turns {
			await, start := how(turn), time.Now()
			for i := range block {
				StoreRelease32(&word.word, at(turn, i)+1)
				await(at(turn, i) + 1)
			}
			spent[turn%2] = append(spent[turn%2], time.Since(start))
		}
	}, func() {
		for turn := range turns {
			await := how(turn)
			for i := range block {
				await(at(turn, i))
				StoreRelease32(&word.word, at(turn, i)+2)
			}
		}
	})
	hinted, unhinted := median(spent[0], block), median(spent[1], block)
	b.ReportMetric(hinted, "ns/op")
	b.ReportMetric(unhinted, "atomic.Load-ns/op")
	b.ReportMetric(hinted/unhinted, "ratio")
}

// Lines that another CPU wrote last: some 100 ns of other work before the first
// locked instruction on each, with and without asking for the line before it.
func BenchmarkPrefetchW(b *testing.B) {
	const count = 256
	lines := make([]line, count)
	var turn line // odd: the right side writes the lines
	rounds := b.N/count + 2
	var spent [2][]time.Duration
	await := func(v uint32) {
		for WaitWhileEqual32(&turn.word, v, 1000) == v {
			yieldCPU()
		}
	}
	visit := func(first func(p unsafe.Pointer)) time.Duration {
		start := time.Now()
		for i := range lines {
			first(unsafe.Pointer(&lines[i]))
			for range 300 {
			}
			atomic.AddUint32(&lines[i].word, 1)
		}
		return time.Since(start)
	}
	onTwoCPUs(b, func() {
		for i := range uint32(2 * rounds) {
			StoreRelease32(&turn.word, 2*i+1)
			await(2*i + 1)
			if i%2 == 0 {
				spent[0] = append(spent[0], visit(func(p unsafe.Pointer) { PrefetchW(p) }))
			} else {
				spent[1] = append(spent[1], visit(func(p unsafe.Pointer) {}))
			}
		}
	}, func() {
		for i := range uint32(2 * rounds) {
			await(2 * i)
			for j := range lines {
				atomic.AddUint32(&lines[j].word, 1)
			}
			StoreRelease32(&turn.word, 2*i+2)
		}
	})
	asked, unasked := median(spent[0], count), median(spent[1], count)
	b.ReportMetric(asked, "ns/op")
	b.ReportMetric(unasked, "unasked-ns/op")
	b.ReportMetric(asked/unasked, "ratio")
}
