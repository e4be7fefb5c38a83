package parking_test

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/lookup"
	"github.com/hqsync/hqsync/parking"
)

// A wait that is refused: look-up, count, lock, compare, unlock.
func BenchmarkWaitRefused(b *testing.B) {
	defer lookup.SetNext(lookup.Pair)
	for _, d := range lookup.Designs() {
		for _, flags := range []uint32{0, parking.Immutable} {
			if flags != 0 && d != lookup.Pair {
				continue
			}
			b.Run(fmt.Sprintf("%v/immutable=%d", d, flags), func(b *testing.B) {
				lookup.SetNext(d)
				var tab parking.Table
				if err := tab.SetSlots(1024, flags); err != nil {
					b.Fatal(err)
				}
				words := make([]uint32, 1024)
				i := 0
				for b.Loop() {
					tab.Wait(parking.WordOf(&words[i%1024]), 1, parking.AllBits, parking.Private, parking.Limit{})
					i++
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
