package sync2

import "sync"

// A Locker represents an object that can be locked and unlocked. It is package
// sync's, so that values pass between the two.
type Locker = sync.Locker

// Once is package sync's.
type Once = sync.Once

// Pool is package sync's.
type Pool = sync.Pool

// Map is package sync's.
type Map = sync.Map

// OnceFunc is package sync's.
func OnceFunc(f func()) func() { return sync.OnceFunc(f) }

// OnceValue is package sync's.
func OnceValue[T any](f func() T) func() T { return sync.OnceValue(f) }

// OnceValues is package sync's.
func OnceValues[T1, T2 any](f func() (T1, T2)) func() (T1, T2) { return sync.OnceValues(f) }
