// Package sync2 is a drop-in replacement for package sync.
package sync2

import "sync"

// The names of package sync, until the package's own types replace four of them.
type (
	Locker    = sync.Locker
	Mutex     = sync.Mutex
	RWMutex   = sync.RWMutex
	Cond      = sync.Cond
	WaitGroup = sync.WaitGroup
	Once      = sync.Once
	Pool      = sync.Pool
	Map       = sync.Map
)
