//go:build !linux

package futex

import "errors"

// A Kernel says which of the kernel's futexes.
type Kernel struct{ Shared, Blocking bool }

var errNoFutex = errors.New("bench: this system has no futex; only linux has")

// Missing returns why the kernel's futex cannot be measured, nil if it can.
func Missing() error { return errNoFutex }

// New returns an error.
func (k Kernel) New() (Futex, error) { return Futex{}, errNoFutex }

// A PI exists on linux only.
type PI struct{}

// Lock is not called where Missing says why.
func (l *PI) Lock(uint32) {}

// Unlock is not called where Missing says why.
func (l *PI) Unlock(uint32) {}

// ThreadID is not called where Missing says why.
func ThreadID() uint32 { return 0 }
