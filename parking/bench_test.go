package parking_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hqsync/hqsync/internal/lookup"
	"github.com/hqsync/hqsync/parking"
)

// A wait that is refused: look-up, lock, compare, unlock. By number of slots, by
// design of the look-up, and in the hash that all tables share (slots=0). The
// command "bench hash" has the same beside the kernel's futex.
func BenchmarkWaitRefused(b *testing.B) {
	for _, n := range []uint64{0, 32, 8192} {
		for _, flags := range []uint32{0, parking.Immutable} {
			if n != 0 || flags == 0 {
				benchRefused(b, lookup.Pair, n, flags)
			}
		}
	}
	for _, d := range lookup.Designs()[1:] {
		benchRefused(b, d, 8192, 0)
	}
}

// benchRefused waits in vain on many words of each P.
func benchRefused(b *testing.B, d lookup.Design, slots uint64, flags uint32) {
	name := fmt.Sprintf("design=%s/slots=%d/immutable=%d", strings.ReplaceAll(d.String(), " ", "-"), slots, flags)
	b.Run(name, func(b *testing.B) {
		defer lookup.SetNext(lookup.Pair)
		lookup.SetNext(d)
		var tab parking.Table
		if err := tab.SetSlots(slots, flags); err != nil {
			b.Fatal(err)
		}
		b.RunParallel(func(pb *testing.PB) {
			words := make([]uint32, 1024)
			for i := 0; pb.Next(); i++ {
				tab.Wait(parking.WordOf(&words[i%len(words)]), 1, parking.AllBits, parking.Private, parking.Limit{})
			}
		})
	})
}

// Waking and requeueing a crowd on one word; an operation is one goroutine of it.
func BenchmarkWake(b *testing.B) {
	benchCrowd(b, func(tab *parking.Table, from, _ *uint32, n int) (done int) {
		done, _ = tab.Wake(parking.WordOf(from), n, parking.AllBits, parking.Private)
		return done
	})
}

func BenchmarkRequeue(b *testing.B) {
	benchCrowd(b, func(tab *parking.Table, from, to *uint32, n int) (done int) {
		_, done, _ = tab.Requeue(parking.WordOf(from), parking.WordOf(to), 0, n, parking.Private)
		return done
	})
}

func benchCrowd(b *testing.B, operation func(tab *parking.Table, from, to *uint32, n int) int) {
	for _, waiters := range []int{8, 128} {
		for _, each := range []int{1, waiters} {
			b.Run(fmt.Sprintf("waiters=%d/percall=%d", waiters, each), func(b *testing.B) {
				var tab parking.Table
				words := make([]uint32, 2)
				var wg sync.WaitGroup
				b.StopTimer()
				for range (b.N + waiters - 1) / waiters {
					for range waiters {
						wg.Go(func() { tab.Wait(parking.WordOf(&words[0]), 0, parking.AllBits, parking.Private, parking.Limit{}) })
					}
					for tab.Stats().Parked != waiters {
						runtime.Gosched()
					}
					b.StartTimer()
					for done := 0; done < waiters; {
						done += operation(&tab, &words[0], &words[1], each)
					}
					b.StopTimer()
					tab.Wake(parking.WordOf(&words[1]), waiters, parking.AllBits, parking.Private)
					wg.Wait()
				}
			})
		}
	}
}

// A wake of a word that nobody waits on.
func BenchmarkWakeNobody(b *testing.B) {
	var tab parking.Table
	if err := tab.SetSlots(1024, 0); err != nil {
		b.Fatal(err)
	}
	words := make([]uint32, 1024)
	i := 0
	for b.Loop() {
		tab.Wake(parking.WordOf(&words[i%1024]), 1, parking.AllBits, parking.Private)
		i++
	}
}

// Layer 1: queue and be taken off again, without sleeping.
func BenchmarkParkUnparked(b *testing.B) {
	var tab parking.Table
	word := new(uint32)
	k := parking.Key{Addr: parking.AddrOf(word)}
	unpark := func() { tab.UnparkOne(k, nil) }
	for b.Loop() {
		tab.Park(k, nil, unpark, nil, &parking.Options{})
	}
}

// Two goroutines that wake each other.
func BenchmarkPingPong(b *testing.B) {
	var tab parking.Table
	words := make([]uint32, 2)
	key := func(i int) parking.Key { return parking.Key{Addr: parking.AddrOf(&words[i])} }
	done := make(chan bool)
	go func() {
		for range b.N {
			tab.Park(key(0), nil, nil, nil, &parking.Options{})
			for tab.UnparkOne(key(1), nil).Unparked == 0 {
			}
		}
		close(done)
	}()
	for range b.N {
		tab.Park(key(1), nil, func() {
			for tab.UnparkOne(key(0), nil).Unparked == 0 {
			}
		}, nil, &parking.Options{})
	}
	<-done
}
