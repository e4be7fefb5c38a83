//go:build race

package race

import (
	"runtime"
	"unsafe"
)

// Enabled reports whether this build runs under the race detector.
const Enabled = true

// Acquire draws an edge from every earlier Release or ReleaseMerge of addr to
// the calling goroutine.
//
//go:norace
func Acquire(addr unsafe.Pointer) { runtime.RaceAcquire(addr) }

// Release starts an edge from the calling goroutine at addr and forgets the
// edges that started there before.
//
//go:norace
func Release(addr unsafe.Pointer) { runtime.RaceRelease(addr) }

// ReleaseMerge is Release that keeps the edges that started at addr before.
//
//go:norace
func ReleaseMerge(addr unsafe.Pointer) { runtime.RaceReleaseMerge(addr) }

// Disable stops the detector from drawing edges for what the calling goroutine
// does until the matching Enable. Plain memory accesses are still checked.
//
//go:norace
func Disable() { runtime.RaceDisable() }

// Enable undoes one Disable.
//
//go:norace
func Enable() { runtime.RaceEnable() }

// Read tells the detector that the calling goroutine read the word at addr.
//
//go:norace
func Read(addr unsafe.Pointer) { runtime.RaceRead(addr) }

// Write tells the detector that the calling goroutine wrote the word at addr.
//
//go:norace
func Write(addr unsafe.Pointer) { runtime.RaceWrite(addr) }
