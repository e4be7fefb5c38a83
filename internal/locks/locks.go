// Package locks has the spin locks that hq is compared with: on real CPUs (go
// run ./bench spin), in the model checker and in the cost model of internal/sim
// (go run -tags sim ./bench numasim). They are written from the papers named at
// each, for comparison only: none of them bears to lose its CPU while it waits,
// and those with queues need to know the number of threads beforehand.
package locks

import (
	"fmt"
	"strings"
)

// A Lock is a spin lock whose callers say who they are: thread numbers count
// from 0, and at most one goroutine at a time uses a number. Each Unlock
// synchronizes before the Lock that follows it.
type Lock interface {
	Lock(thread int)
	Unlock(thread int)
}

// A Place is where a thread runs: the domain within which it is cheap to hand a
// cache line over, and the socket. Both count from 0; a domain lies in one
// socket.
type Place struct{ Domain, Socket int }

// A Kind is one of the locks of this package.
type Kind struct {
	Name, Text string
	New        func(threads []Place) Lock
}

// Kinds lists the locks, from simple to hierarchical.
var Kinds = []Kind{
	{"tas", "test and set", func([]Place) Lock { return new(TAS) }},
	{"ttas", "test, then test and set, with backoff", func(threads []Place) Lock { return NewTTAS(len(threads)) }},
	{"ticket", "ticket lock", func([]Place) Lock { return new(Ticket) }},
	{"mcs", "queue of Mellor-Crummey and Scott", func(threads []Place) Lock { return NewMCS(len(threads)) }},
	{"clh", "queue of Craig, Landin and Hagersten", func(threads []Place) Lock { return NewCLH(len(threads)) }},
	{"qspinlock", "word, pending bit and MCS queue, as in Linux", func(threads []Place) Lock { return NewQspin(len(threads)) }},
	{"cna", "qspinlock with a compact NUMA-aware queue", func(threads []Place) Lock { return NewCNA(threads) }},
	{"cohort", "C-BO-MCS: backoff lock over an MCS lock per domain", func(threads []Place) Lock { return NewCohort(threads) }},
	{"hmcs", "tree of MCS locks: domain, socket, machine", func(threads []Place) Lock { return NewHMCS(threads) }},
	{"hqkernel", "qspinlock that turns into a queue per domain, as proposed for Linux", func(threads []Place) Lock { return NewHQKernel(threads) }},
}

// New returns an unlocked lock of the named kind for the given threads.
func New(name string, threads []Place) (Lock, error) {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		if names[i] = k.Name; k.Name == name {
			return k.New(threads), nil
		}
	}
	return nil, fmt.Errorf("locks: no lock %q; want one of %s", name, strings.Join(names, ", "))
}

// line is the size of a cache line. What different threads write lies on
// different lines; types are multiples of it, without pointers, so that the
// allocator aligns them to it.
const line = 64

// A thread's node is known to others by a reference: its number plus one, so
// that 0 is nobody.
func refOf(thread int) uint32 { return uint32(thread) + 1 }

// await waits until the word is not 0 and returns what it is then.
func await(x *atomicUint32) uint32 {
	for {
		if v := x.Load(); v != 0 {
			return v
		}
		pause()
	}
}

// domains returns the number of domains.
func domains(threads []Place) int {
	n := 0
	for _, p := range threads {
		n = max(n, p.Domain+1)
	}
	return n
}

// random is a thread's own xorshift generator; 0 stands for a state that has not
// been seeded.
type random uint32

func (r *random) next(thread int) uint32 {
	x := uint32(*r)
	if x == 0 {
		x = refOf(thread) * 0x9e3779b9
	}
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*r = random(x)
	return x
}
