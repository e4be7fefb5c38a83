package topology

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/env"
)

var (
	loaded   atomic.Pointer[Topology] // set once
	claimed  atomic.Bool              // somebody reads the machine, or has read it
	unloaded = newTopology(oneNode("not read yet", firstCPUs()), None)

	discovered = sync.OnceValues(func() (*Topology, error) {
		t, err := Discover()
		loaded.Store(t)
		return t, err
	})
)

// Ready returns the machine if it has been read, otherwise one that stands in
// for it: runtime.NumCPU CPUs on one NUMA node and in one domain. It never reads
// anything, blocks or allocates, and a pinned goroutine may call it.
//
// The machine appears between two calls: code that uses indices of domains calls
// Ready once and stays with the answer.
//
//go:norace
func Ready() *Topology {
	if t := loaded.Load(); t != nil {
		return t
	}
	return unloaded
}

// Load returns the machine. The first caller reads it, which opens some dozens of
// files and allocates; callers that come meanwhile do not wait but get what
// [Ready] returns. What went wrong is left to [Get] to tell. A pinned goroutine
// may not call it.
func Load() *Topology {
	if claimed.CompareAndSwap(false, true) {
		discovered()
	}
	return Ready()
}

// Get returns the machine, waiting for it if necessary. The topology is never
// nil and is the one that Load and Ready return from now on; see [Discover] for
// the error, which does not make it unusable. The reading of the machine
// synchronizes before the return of every call that gets it.
func Get() (*Topology, error) {
	claimed.Store(true)
	return discovered()
}

// Discover reads the machine anew, or makes up the one that the environment asks
// for. It returns an error if the environment variable SYNC2 is wrong, and goes
// on as if the wrong items were not there, or if the kernel's description of the
// machine makes no sense, and then returns a machine of one NUMA node.
func Discover() (*Topology, error) {
	return discover(env.Lookup, env.Err())
}

func discover(lookup func(key string) (string, bool), envErr error) (*Topology, error) {
	name, _ := lookup("domains") // empty if it is not set: LLC
	grouping := groupings[name]
	if value, ok := lookup("topology"); ok {
		t, err := fake(value)
		if err == nil {
			return t.GroupBy(grouping), envErr
		}
		envErr = errors.Join(envErr, err)
	}
	m, err := readMachine()
	return newTopology(m, grouping), errors.Join(envErr, err)
}

var groupings = map[string]Grouping{"llc": LLC, "node": Node, "none": None}

// fake makes the machine that SYNC2=topology=value asks for.
func fake(value string) (*Topology, error) {
	s, ok := env.ParseShape(value)
	if !ok {
		return nil, fmt.Errorf("topology: %q is not a shape such as 4x8 or 2x12x16", value)
	}
	return Synthetic(Shape{Packages: s.Nodes, LLCsPerNode: s.LLCsPerNode, CoresPerLLC: s.CPUsPerLLC})
}

// firstCPUs returns what Go alone knows about the CPUs: their number.
func firstCPUs() Set { return rangeOf(0, min(runtime.NumCPU(), MaxCPU+1)-1) }
