// Package futex has the futex operations that are compared, those of a parking.Table and the kernel's, and the
// workloads of perf bench futex on them.
package futex

import (
	"errors"
	"fmt"

	"github.com/hqsync/hqsync/internal/lookup"
	"github.com/hqsync/hqsync/parking"
)

// A Futex is one implementation.
type Futex struct {
	// Refuse waits once on each of the words for a value that they do not have.
	Refuse func(words []uint32) error
	// Wait sleeps if the word has the value, and reports whether it was woken.
	Wait func(word *uint32, val uint32) bool
	// Wake wakes up to n who wait on the word and returns how many.
	Wake func(word *uint32, n int) int
	// Requeue lets up to n who wait on from wait on to instead, and returns how many.
	Requeue func(from, to *uint32, n int) int
}

// A Table says which table to make.
type Table struct {
	Slots     uint64 // 0: the hash that all tables share
	Immutable bool
	Design    lookup.Design
}

// errUnrefused says that a wait that had to be refused was not.
var errUnrefused = errors.New("bench: a wait for a value that the word does not have was not refused")

// New makes the table and returns its operations.
func (c Table) New() (Futex, error) {
	var flags uint32
	if c.Immutable {
		flags = parking.Immutable
	}
	t := new(parking.Table)
	lookup.SetNext(c.Design)
	defer lookup.SetNext(lookup.Pair)
	if err := t.SetSlots(c.Slots, flags); err != nil {
		return Futex{}, fmt.Errorf("bench: a table of %d slots: %w", c.Slots, err)
	}
	return of(t), nil
}

func of(t *parking.Table) Futex {
	return Futex{
		Refuse: func(words []uint32) error {
			for i := range words {
				err := t.Wait(parking.WordOf(&words[i]), 1, parking.AllBits, parking.Private, parking.Limit{})
				if err != parking.ErrAgain {
					return errUnrefused
				}
			}
			return nil
		},
		Wait: func(word *uint32, val uint32) bool {
			return t.Wait(parking.WordOf(word), val, parking.AllBits, parking.Private, parking.Limit{}) == nil
		},
		Wake: func(word *uint32, n int) int {
			woken, _ := t.Wake(parking.WordOf(word), n, parking.AllBits, parking.Private)
			return woken
		},
		Requeue: func(from, to *uint32, n int) int {
			_, moved, _ := t.Requeue(parking.WordOf(from), parking.WordOf(to), 0, n, parking.Private)
			return moved
		},
	}
}
