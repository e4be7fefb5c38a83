package locktest

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// KeepWorldRunning lets no garbage collection stop the world before the test ends.
// It is for a pinned goroutine that waits for another: a world about to stop would
// start no goroutine before the pinned one lets go, nor let that one see any.
func KeepWorldRunning(t testing.TB) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	runtime.GC() // ends a collection that is under way
}
