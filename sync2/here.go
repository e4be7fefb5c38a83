//go:build !sync2_std && !sim

package sync2

import (
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/topology"
)

// hereTag returns the tag of a mutex that becomes contended here: 1 + the id of
// the NUMA node that the caller, who is pinned, runs on.
//
// The first goroutine that parks reads the machine, after it has tagged its
// mutex. Until that is done tags name node 0; so do all on a machine with one
// node. That only decides in which buckets the waiters of this episode of
// contention are: whoever looks for them reads the tag. So does a P that goes on
// with a thread elsewhere.
//
//go:norace
func hereTag() uint32 {
	race.Disable() // or all would seem ordered after the goroutine that read the machine
	defer race.Enable()
	return 1 + uint32(topology.CurrentNode())
}
