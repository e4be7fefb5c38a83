//go:build !sync2_std

package sync2

import (
	"unsafe"

	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// keyOf returns the key for waiting on a word. The word outlives every wait on
// it, because the waiting method holds its receiver until it returns.
func keyOf[T any](word *T) parking.Key { return parking.Key{Addr: parking.AddrOf(word)} }

// The race detector's view of a word, in terms of its address only.

func raceAcquire[T any](word *T)      { race.Acquire(unsafe.Pointer(word)) }
func raceRelease[T any](word *T)      { race.Release(unsafe.Pointer(word)) }
func raceReleaseMerge[T any](word *T) { race.ReleaseMerge(unsafe.Pointer(word)) }
func raceRead[T any](word *T)         { race.Read(unsafe.Pointer(word)) }
func raceWrite[T any](word *T)        { race.Write(unsafe.Pointer(word)) }
