//go:build !race

package race

import "unsafe"

// Enabled reports whether this build runs under the race detector.
const Enabled = false

func Acquire(addr unsafe.Pointer)      {}
func Release(addr unsafe.Pointer)      {}
func ReleaseMerge(addr unsafe.Pointer) {}
func Disable()                         {}
func Enable()                          {}
func Read(addr unsafe.Pointer)         {}
func Write(addr unsafe.Pointer)        {}
