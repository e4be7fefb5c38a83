package parking_test

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/hqsync/hqsync/parking"
)

func TestSetSlots_ErrorsInOrder(t *testing.T) {
	const imm = parking.Immutable
	type call struct {
		n     uint64
		flags uint32
		want  error
	}
	for _, c := range []struct {
		name  string
		calls []call
		slots int
		fixed bool
	}{
		{"fresh", nil, 0, false},
		{"bad numbers", []call{{1, 0, parking.ErrInvalid}, {3, 0, parking.ErrInvalid}, {6, 0, parking.ErrInvalid},
			{1000, 0, parking.ErrInvalid}, {math.MaxUint64, 0, parking.ErrInvalid}}, 0, false},
		{"never truncated to 32 bits", []call{{1 << 32, 0, parking.ErrInvalid}, {1<<32 + 4, 0, parking.ErrInvalid},
			{1 << 63, 0, parking.ErrInvalid}}, 0, false},
		{"unknown flags", []call{{4, 2, parking.ErrInvalid}, {4, imm | 4, parking.ErrInvalid}, {1 << 31, 1 << 31, parking.ErrInvalid}}, 0, false},
		{"too large", []call{{8, 0, nil}, {2 * parking.MaxSlots, 0, parking.ErrNoMemory}, {1 << 31, imm, parking.ErrNoMemory}}, 8, false},
		{"up and down", []call{{2, 0, nil}, {64, 0, nil}, {65536, 0, nil}, {4, 0, nil}, {4, 0, nil}}, 4, false},
		{"global is final", []call{{4, 0, nil}, {0, 0, nil}, {4, 0, parking.ErrBusy}, {0, 0, parking.ErrBusy}, {4, imm, parking.ErrBusy},
			{1 << 31, 0, parking.ErrBusy}, {6, 0, parking.ErrInvalid}, {4, 2, parking.ErrInvalid}}, 0, true},
		{"immutable is final", []call{{16, imm, nil}, {16, 0, parking.ErrBusy}, {16, imm, parking.ErrBusy}, {0, 0, parking.ErrBusy},
			{32, 0, parking.ErrBusy}, {1 << 31, 0, parking.ErrBusy}, {3, 0, parking.ErrInvalid}, {1, imm, parking.ErrInvalid}}, 16, true},
		{"made immutable later", []call{{16, 0, nil}, {16, imm, nil}, {16, 0, parking.ErrBusy}}, 16, true},
		{"global and immutable", []call{{0, imm, nil}, {0, 0, parking.ErrBusy}}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tab parking.Table
			for i, call := range c.calls {
				before := tab.Slots()
				if err := tab.SetSlots(call.n, call.flags); !errors.Is(err, call.want) {
					t.Errorf("call %d, SetSlots(%d, %d): %v, not %v", i, call.n, call.flags, err, call.want)
				}
				if call.want != nil && tab.Slots() != before {
					t.Errorf("call %d failed and changed the slots from %d to %d", i, before, tab.Slots())
				}
			}
			if tab.Slots() != c.slots || tab.Immutable() != c.fixed {
				t.Errorf("Slots %d, Immutable %v; %d, %v expected", tab.Slots(), tab.Immutable(), c.slots, c.fixed)
			}
			// It works whatever it went through.
			k := keys(t, 1)[0]
			wakeAllInOrder(t, &tab, k, sleepers(&tab, k, 3))
		})
	}
}

// Two threads that both choose the global hash: the second must not migrate
// from a table that has no buckets of its own (B4 in the kernel's history).
func TestB4_RacingSettersOfZero_OneWins(t *testing.T) {
	for range effort(t, 200) {
		var tab parking.Table
		k := keys(t, 1)[0]
		all := sleepers(&tab, k, 3)
		var won, nonZero atomic.Int32
		within(t, patience, func() {
			concurrently(6, func(i int) {
				if i%2 == 0 {
					switch err := tab.SetSlots(0, 0); err {
					case nil:
						won.Add(1)
					case parking.ErrBusy:
					default:
						t.Error(err)
					}
				} else if err := tab.SetSlots(64, 0); err == nil {
					nonZero.Add(1)
				} else if err != parking.ErrBusy {
					t.Error(err)
				}
			})
		})
		if won.Load() != 1 {
			t.Fatalf("%d setters of 0 won, %d of 64 went before", won.Load(), nonZero.Load())
		}
		if tab.Slots() != 0 || !tab.Immutable() || tab.SetSlots(4, 0) != parking.ErrBusy {
			t.Fatal("the choice of the global hash is not final")
		}
		wakeAllInOrder(t, &tab, k, all)
	}
}

// While one call holds the resize mutex others gather; the next in turn carries
// out the highest of them and answers all.
func TestRacingSetters_HighestRankWins(t *testing.T) {
	const imm = parking.Immutable
	type ask struct {
		n     uint64
		flags uint32
		want  error
	}
	for _, c := range []struct {
		asks  []ask
		slots int
		fixed bool
	}{
		{[]ask{{64, 0, nil}, {1024, 0, nil}, {2, 0, nil}}, 1024, false},
		{[]ask{{4096, 0, parking.ErrBusy}, {8, imm, nil}, {16, 0, parking.ErrBusy}}, 8, true},
		{[]ask{{8, imm, parking.ErrBusy}, {32, imm, nil}}, 32, true},
		{[]ask{{8, imm, parking.ErrBusy}, {0, 0, nil}, {32, 0, parking.ErrBusy}}, 0, true},
	} {
		t.Run(fmt.Sprint(c.asks), func(t *testing.T) {
			var tab parking.Table
			k := keys(t, 1)[0]
			all := sleepers(&tab, k, 3)
			release := tab.HoldResize()
			errs := make([]error, len(c.asks))
			done := make(chan bool)
			go func() {
				concurrently(len(c.asks), func(i int) { errs[i] = tab.SetSlots(c.asks[i].n, c.asks[i].flags) })
				close(done)
			}()
			eventually(t, "all have asked", func() bool { return tab.Asked() == len(c.asks) })
			release()
			<-done
			for i, a := range c.asks {
				if errs[i] != a.want {
					t.Errorf("SetSlots(%d, %d): %v, not %v", a.n, a.flags, errs[i], a.want)
				}
			}
			if tab.Slots() != c.slots || tab.Immutable() != c.fixed {
				t.Errorf("Slots %d, Immutable %v", tab.Slots(), tab.Immutable())
			}
			wakeAllInOrder(t, &tab, k, all)
		})
	}
}

func TestB8_FirstUseFromManyGoroutines(t *testing.T) {
	for range effort(t, 300) {
		var tab parking.Table
		ks := keys(t, 8)
		within(t, patience, func() {
			concurrently(16, func(i int) {
				switch k := ks[i/2]; i % 2 {
				case 0:
					tab.Park(k, nil, nil, nil, &parking.Options{})
				default:
					for tab.UnparkOne(k, nil).Unparked == 0 {
						yieldOrSleep()
					}
				}
			})
		})
		audit(t, &tab, 0)
	}
}

func TestUnusedTable_HasNoBuckets(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	if tab.Waiting(k) || tab.Slots() != 0 || tab.Immutable() {
		t.Error("a fresh table is not empty")
	}
	tab.UnparkOne(k, nil)
	tab.UnparkAll(k, nil)
	if tab.Slots() != 0 {
		t.Errorf("%d slots without a waiter", tab.Slots())
	}
	if s := sleep(&tab, k, parking.Options{}); tab.Slots() < 2 {
		t.Errorf("%d slots with a waiter", tab.Slots())
	} else {
		tab.UnparkOne(k, nil)
		s.wait(t)
	}
}
