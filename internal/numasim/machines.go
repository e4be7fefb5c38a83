//go:build sim

package numasim

import (
	"fmt"
	"strings"
	"time"

	"github.com/hqsync/hqsync/internal/sim"
)

// A Machine is a computer, with the choice of what counts as a domain there.
type Machine struct {
	Name, Text string
	sim.Machine
	Domain func(sim.CPUPlace) int // within which locks hand over
	Even   bool                   // few threads are spread evenly over the sockets, else they are where chance puts them
	// HandOver is what a lock's critical section takes beside waiting for cache lines: the only figure that is fitted, on
	// one cell of one published table per machine, which Fitted names.
	HandOver time.Duration
	Fitted   string
}

// shape describes sockets that are all alike.
type shape struct{ sockets, nodes, clusters, cores, threads int } // each: per the one before

// cpus numbers the CPUs as Linux does: first one thread of each core, then the second ones.
func (s shape) cpus() (all []sim.CPUPlace) {
	for range s.threads {
		core, cluster, node := 0, 0, 0
		for socket := range s.sockets {
			for range s.nodes {
				for range s.clusters {
					for range s.cores {
						all = append(all, sim.CPUPlace{Core: core, Cluster: cluster, Node: node, Socket: socket})
						core++
					}
					cluster++
				}
				node++
			}
		}
	}
	return all
}

func bySocket(p sim.CPUPlace) int  { return p.Socket }
func byNode(p sim.CPUPlace) int    { return p.Node }
func byCluster(p sim.CPUPlace) int { return p.Cluster }
func byHalf(p sim.CPUPlace) int    { return p.Node / 2 }

const ns = time.Nanosecond

// genoa is a pair of EPYC 9654: per socket 12 dies of 8 cores with a last-level cache of their own, 3 of them to a quadrant.
// Transfers as measured by compare-and-swap ping-pong between all pairs; a line whose memory is on the other socket goes
// there and back even between dies of one socket.
func genoa() sim.Machine {
	return sim.Machine{
		CPUs:     shape{2, 4, 3, 8, 2}.cpus(),
		SameCore: 9 * ns, SameCluster: 27 * ns, SameNode: 90 * ns, SameSocket: 100 * ns, CrossSocket: 192 * ns, RemoteHome: 192 * ns,
		Hit: 1 * ns, Locked: 6 * ns, Pause: 15 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		Wakeup: 2000 * ns, Clock: 25 * ns, Scheduler: 300 * ns,
	}
}

// kunpeng is a pair of Kunpeng 920 with 48 cores: per socket two dies, which are NUMA nodes, of 6 clusters of 4 cores. No
// measurement between sockets has been found: 200 ns is an assumption.
func kunpeng() sim.Machine {
	return sim.Machine{
		CPUs:     shape{2, 2, 6, 4, 1}.cpus(),
		SameCore: 34 * ns, SameCluster: 34 * ns, SameNode: 36 * ns, SameSocket: 81 * ns, CrossSocket: 200 * ns,
		Hit: 1 * ns, Locked: 8 * ns, Pause: 5 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		Wakeup: 2000 * ns, Clock: 25 * ns, Scheduler: 300 * ns,
	}
}

// cascadeLake is a pair of Xeon with 28 cores and one last-level cache per socket.
func cascadeLake() sim.Machine {
	return sim.Machine{
		CPUs:     shape{2, 1, 1, 28, 2}.cpus(),
		SameCore: 7 * ns, SameCluster: 48 * ns, SameNode: 48 * ns, SameSocket: 48 * ns, CrossSocket: 138 * ns,
		Hit: 1 * ns, Locked: 6 * ns, Pause: 45 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		Wakeup: 2000 * ns, Clock: 25 * ns, Scheduler: 300 * ns,
	}
}

// haswell is four Xeon E7 v3 with 18 cores each.
func haswell() sim.Machine {
	return sim.Machine{
		CPUs:     shape{4, 1, 1, 18, 2}.cpus(),
		SameCore: 8 * ns, SameCluster: 42 * ns, SameNode: 42 * ns, SameSocket: 42 * ns, CrossSocket: 125 * ns,
		Hit: 1 * ns, Locked: 7 * ns, Pause: 5 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		Wakeup: 2000 * ns, Clock: 25 * ns, Scheduler: 300 * ns,
	}
}

const fittedGenoa = "NPS 12, 384 threads: +186 %"

// Machines lists the presets.
var Machines = []Machine{
	{Name: "epyc9654-nps1", Text: "2x EPYC 9654, NPS 1: a domain is a socket", Machine: genoa(), Domain: bySocket,
		HandOver: 54 * ns, Fitted: fittedGenoa},
	{Name: "epyc9654-nps2", Text: "2x EPYC 9654, NPS 2: a domain is half a socket", Machine: genoa(), Domain: byHalf,
		HandOver: 54 * ns, Fitted: fittedGenoa},
	{Name: "epyc9654-nps4", Text: "2x EPYC 9654, NPS 4: a domain is a quadrant", Machine: genoa(), Domain: byNode,
		HandOver: 54 * ns, Fitted: fittedGenoa},
	{Name: "epyc9654-nps12", Text: "2x EPYC 9654, NPS 12: a domain is a last-level cache, as NUMA node", Machine: genoa(), Domain: byCluster,
		HandOver: 54 * ns, Fitted: fittedGenoa},
	{Name: "epyc9654-nps1-llc", Text: "2x EPYC 9654, NPS 1: a domain is a last-level cache, found by the lock itself", Machine: genoa(), Domain: byCluster,
		HandOver: 54 * ns, Fitted: fittedGenoa},
	{Name: "kunpeng920", Text: "2x Kunpeng 920, 96 cores: a domain is a die", Machine: kunpeng(), Domain: byNode, Even: true,
		HandOver: 0, Fitted: "96 threads, +158 %: reached with none left"},
	{Name: "cascadelake", Text: "2x Xeon Cascade Lake, 28 cores: a domain is a socket", Machine: cascadeLake(), Domain: bySocket, Even: true,
		HandOver: 42 * ns, Fitted: "nowhere: as haswell4"},
	{Name: "haswell4", Text: "4x Xeon E7 v3, 18 cores: a domain is a socket", Machine: haswell(), Domain: bySocket, Even: true,
		HandOver: 42 * ns, Fitted: "CNA, 72 threads: 1.61 times qspinlock"},
}

// MachineNamed returns a preset.
func MachineNamed(name string) (Machine, error) {
	names := make([]string, len(Machines))
	for i, m := range Machines {
		if names[i] = m.Name; m.Name == name {
			return m, nil
		}
	}
	return Machine{}, fmt.Errorf("numasim: no machine %q; want one of %s", name, strings.Join(names, ", "))
}
