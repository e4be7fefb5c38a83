package topology

import "fmt"

// A Shape is a regular machine. A count of 0 means 1.
type Shape struct {
	Packages        int
	NodesPerPackage int // NUMA nodes
	LLCsPerNode     int // last-level caches
	CoresPerLLC     int
	ThreadsPerCore  int
}

// Distances of the machines that Synthetic makes.
const (
	distanceLocal   = 10 // by definition
	distancePackage = 12 // as AMD's firmware says it
	distanceRemote  = 20 // as Linux assumes it
)

// Synthetic makes up a machine of the given shape. CPUs are numbered as Linux
// does it on amd64: one thread of each core, in the order of their caches, nodes
// and packages, then the second threads, and so on. All of them are online and
// allowed; domains are made by [LLC].
//
// On such a machine a goroutine runs where its P is said to run, not where its
// thread runs: P 0 in domain 0, P 1 in domain 1, and so on in turn. So it shows
// locality on a machine that has none, if GOMAXPROCS is large enough.
//
// It returns an error if a count is negative or the machine has more CPUs or
// NUMA nodes than [MaxCPU] and [MaxNUMANode] allow.
func Synthetic(s Shape) (*Topology, error) {
	total := 1
	for _, n := range []*int{&s.Packages, &s.NodesPerPackage, &s.LLCsPerNode, &s.CoresPerLLC, &s.ThreadsPerCore} {
		if *n == 0 {
			*n = 1
		}
		if *n < 1 || *n > (MaxCPU+1)/total {
			return nil, fmt.Errorf("topology: shape %+v has a negative count or more than %d CPUs", s, MaxCPU+1)
		}
		total *= *n
	}
	if nodes := s.Packages * s.NodesPerPackage; nodes > MaxNUMANode+1 {
		return nil, fmt.Errorf("topology: shape %+v has more than %d NUMA nodes", s, MaxNUMANode+1)
	}
	t := newTopology(s.machine(total), LLC)
	t.places = t.spread()
	return t, nil
}

func (s Shape) machine(total int) machine {
	cores := total / s.ThreadsPerCore
	nodes := s.Packages * s.NodesPerPackage
	// threads returns all threads of the i-th of n equal parts of the machine.
	threads := func(i, n int) Set {
		var cpus Set
		per := cores / n
		for thread := range s.ThreadsPerCore {
			cpus.addRange(thread*cores+i*per, thread*cores+i*per+per-1)
		}
		return cpus
	}
	m := oneNode("synthetic", rangeOf(0, total-1))
	m.cacheLine = 64
	m.possibleNodes = rangeOf(0, nodes-1)
	m.nodes = nil
	for i := range nodes {
		m.nodes = append(m.nodes, nodeInfo{NUMANode{i, threads(i, nodes), true}, s.distances(i, nodes)})
	}
	for i := range cores {
		m.cores = append(m.cores, threads(i, cores))
	}
	for i := range nodes * s.LLCsPerNode {
		m.llcs = append(m.llcs, Cache{Level: 3, Size: Unknown, CPUs: threads(i, nodes*s.LLCsPerNode)})
	}
	for i := range s.Packages {
		m.packages = append(m.packages, packageInfo{i, threads(i, s.Packages)})
	}
	return m
}

func (s Shape) distances(from, nodes int) []int {
	row := make([]int, nodes)
	for to := range row {
		switch {
		case from == to:
			row[to] = distanceLocal
		case from/s.NodesPerPackage == to/s.NodesPerPackage:
			row[to] = distancePackage
		default:
			row[to] = distanceRemote
		}
	}
	return row
}

// spread lists the CPUs so that neighbours in the list are in different domains.
func (t *Topology) spread() []int {
	var places []int
	for round := 0; len(places) < t.online.Len(); round++ {
		for _, d := range t.domains {
			if cpu, ok := nth(d.CPUs, round); ok {
				places = append(places, cpu)
			}
		}
	}
	return places
}

// nth returns the n-th smallest id of s, counted from 0.
func nth(s Set, n int) (int, bool) {
	for id := range s.All() {
		if n == 0 {
			return id, true
		}
		n--
	}
	return 0, false
}
