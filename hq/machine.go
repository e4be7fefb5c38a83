package hq

import (
	"sync"

	"github.com/hqsync/hqsync/topology"
)

// Load makes the machine's locality domains and the environment variable SYNC2
// known to Locks. Until its first call, which reads the machine, there is one
// domain, and no lock goes to mode HQ. Goroutines that are pinned may not call it.
func Load() { loadOnce() }

var loadOnce = sync.OnceFunc(func() {
	tuneByEnvironment()
	t, _ := topology.Get()
	t.CurrentCPU() // chooses how to ask: the first time that takes system calls
	located.Store(t)
})

// located is the machine, nil before Load.
var located atomicPointer[topology.Topology]

// Locate remembers where the calling goroutine's P runs, for pinned goroutines
// that may not ask the kernel. It does nothing where there is one domain, or where
// asking takes no system call. Goroutines that are pinned may not call it.
//
//go:norace
func Locate() {
	if t := located.Load(); t != nil && t.NumDomains() > 1 {
		t.Locate()
	}
}

const (
	maxDomains = 64  // of more, several share their cohorts
	maxRosters = 256 // locks in mode HQ at the same time; a further one stays in mode Q
	nodesPerP  = 8   // two for a waiter and its cohort, and spares for those abandoned and not yet unlinked
)

// realDomains is how many locality domains there are, as far as it matters.
//
//go:norace
func realDomains() int {
	t := located.Load()
	if t == nil {
		return 1
	}
	return min(t.NumDomains(), maxDomains)
}

// realHere is the locality domain of the calling goroutine's P, below realDomains.
// It is a hint, and takes no system call.
//
//go:norace
func realHere() uint32 {
	t := located.Load()
	if t == nil {
		return 0
	}
	return uint32(t.LastDomain()) % maxDomains
}
