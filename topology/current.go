package topology

import (
	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// CurrentCPU returns the CPU that the caller runs on, as far as [Ready] knows the
// machine: see [Topology.CurrentCPU].
//
//go:norace
func CurrentCPU() int { return Ready().CurrentCPU() }

// CurrentDomain returns the index of the caller's locality domain in the topology
// that [Ready] returns: see [Topology.CurrentDomain].
//
//go:norace
func CurrentDomain() int { return Ready().CurrentDomain() }

// CurrentNode returns the id of the caller's NUMA node in the topology that
// [Ready] returns: see [Topology.CurrentNode].
//
//go:norace
func CurrentNode() int { return Ready().CurrentNode() }

// CurrentCPU returns the id of the CPU that the caller runs on, or Unknown where
// the system does not tell.
//
// It is a hint. The thread may be moved before CurrentCPU returns; and on arm64,
// where only a system call tells the CPU, each P keeps the answer for 64 calls.
// Whoever relies on it may lose speed by an answer that is wrong, never
// correctness. It does not allocate, block or lock; a pinned goroutine may call it.
//
//go:norace
func (t *Topology) CurrentCPU() int {
	if t.places != nil {
		return t.places[callerIndex()%len(t.places)]
	}
	cpu, _, ok := cpuNode()
	if !ok {
		return Unknown
	}
	return int(cpu)
}

// CurrentDomain returns the index of the locality domain that the caller runs in,
// always one from 0 to NumDomains-1: it is 0 where the CPU or its domain is
// unknown. It is a hint as [Topology.CurrentCPU] is.
//
//go:norace
func (t *Topology) CurrentDomain() int {
	if len(t.domains) == 1 {
		return 0
	}
	return max(0, t.DomainOf(t.CurrentCPU()))
}

// LastDomain is CurrentDomain for callers that may not make a system call. Where
// only the kernel tells the CPU, it is the one that the latest call of Locate, or
// of a Current function, has found for the caller's P; 0 if there was none.
//
//go:norace
func (t *Topology) LastDomain() int {
	if len(t.domains) == 1 {
		return 0
	}
	if t.places != nil {
		return max(0, t.DomainOf(t.CurrentCPU()))
	}
	cpu, ok := lastCPU()
	if !ok {
		return 0
	}
	return max(0, t.DomainOf(int(cpu)))
}

// Locate finds out, for LastDomain, where the caller's P is, if that takes a
// system call and has not been found out lately.
//
//go:norace
func (t *Topology) Locate() {
	if t.places == nil {
		remember()
	}
}

// CurrentNode returns the id of the NUMA node that the caller runs on, always one
// that is online: it is the first one where the CPU or its node is unknown. It is
// a hint as [Topology.CurrentCPU] is.
//
//go:norace
func (t *Topology) CurrentNode() int {
	first := t.nodes[0].ID
	if len(t.nodes) == 1 {
		return first
	}
	if id := t.NodeOf(t.CurrentCPU()); id != Unknown {
		return id
	}
	return first
}

// callerIndex returns a number that differs between callers that run at the same
// time, as far as possible: that of the P, else of the CPU.
//
//go:norace
func callerIndex() int {
	if rt.Pinnable {
		p := rt.Pin()
		rt.Unpin()
		return p
	}
	cpu, _, _ := asm.CPUNode()
	return int(cpu)
}
