//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package hq

import "sync"

// A Lock is a sync.Mutex here, in a build that cannot pin. The methods keep
// their contracts: a section must be short and must not block.
type Lock struct {
	mu sync.Mutex
}

// Lock locks l.
func (l *Lock) Lock() { l.mu.Lock() }

// Unlock unlocks l.
func (l *Lock) Unlock() { l.mu.Unlock() }

// TryLock locks l, or does nothing if l is not free.
func (l *Lock) TryLock() bool { return l.mu.TryLock() }

// LockPinned locks l.
func (l *Lock) LockPinned() { l.mu.Lock() }

// TryLockPinned locks l if it is free.
func (l *Lock) TryLockPinned() bool { return l.mu.TryLock() }

// UnlockPinned unlocks l.
func (l *Lock) UnlockPinned() { l.mu.Unlock() }

// SetHQ does nothing: there is no mode HQ in this build.
func (l *Lock) SetHQ(allowed bool) {}

// InHQ reports false: there is no mode HQ in this build.
func (l *Lock) InHQ() bool { return false }

func readStats() Stats { return Stats{} }
