// Package topology knows the machine: its CPUs, which of them share a core or a
// last-level cache, its NUMA nodes and their distances, the CPUs that this
// process may use, and roughly where the calling goroutine runs.
//
// # Locality domains
//
// A locality domain is a set of CPUs between which a cache line moves cheaply.
// Locks keep their hand-overs inside one for a while. It is the group of CPUs
// under one last-level cache where a NUMA node has several of them, as AMD's
// chiplets do, and otherwise the NUMA node, as on processors with one mesh; see
// [LLC]. Domains are numbered from 0, without gaps, so that they index arrays.
//
// # When it is read
//
// Importing this package reads no file and starts no goroutine. [Load] finds the
// machine out, once; until that is done [Ready] gives a topology of one domain,
// in which everything works and nothing is local to anything.
//
// On Linux the source is sysfs, read by range files so that a machine of 384
// CPUs costs at most 100 opens. What sysfs does not say (it may not be there
// at all, as in some containers) is filled in from the CPU itself (CPUID) and the
// affinity of the process, or stays [Unknown]. On other systems the machine is
// one NUMA node of runtime.NumCPU CPUs.
//
// A [Topology] describes the moment when it was read and never changes. CPUs
// that come online later, or that a cpuset adds later, are unknown to it.
//
// # Environment
//
//	SYNC2=topology=4x8      pretend to be 4 NUMA nodes of 8 CPUs
//	SYNC2=topology=2x12x16  2 NUMA nodes of 12 last-level caches of 16 CPUs
//	SYNC2=domains=llc       domains as described above, the default
//	SYNC2=domains=node      one domain for each NUMA node
//	SYNC2=domains=none      one domain
package topology

// Unknown stands for an id, an index, a size or a distance that the machine does
// not tell. It is never a valid one.
const Unknown = -1

// A CPU is a logical CPU, in Linux's numbering.
type CPU struct {
	ID      int
	Online  bool // it can run threads; if not, all below is Unknown
	Allowed bool // this process may run on it
	Node    int  // id of its NUMA node
	Package int  // id of its socket, as the firmware numbers them
	Core    int  // index for [Topology.Core]: CPUs of one core are SMT siblings
	LLC     int  // index for [Topology.LLC]
	Class   int  // kind of core: 0 is the fastest; all are 0 unless the machine is hybrid
	Domain  int  // index for [Topology.Domain]; known for every online CPU
}

// unknownCPU is what is known about a CPU that is not online.
//
//go:norace
func unknownCPU(id int) CPU {
	return CPU{ID: id, Node: Unknown, Package: Unknown, Core: Unknown, LLC: Unknown, Class: Unknown, Domain: Unknown}
}

// A NUMANode is an online NUMA node. It may lack CPUs or memory.
type NUMANode struct {
	ID        int
	CPUs      Set  // its online CPUs; may be empty
	HasMemory bool // true also where the machine does not say
}

// A Cache is a last-level cache: the farthest from the core of the caches for
// data that sysfs shows.
type Cache struct {
	Level int
	Size  int // bytes, or Unknown
	CPUs  Set // that share it
}

// A Domain is a locality domain.
type Domain struct {
	Node int // id of the NUMA node that holds it; Unknown if it is larger, or the node is unknown
	LLC  int // index for [Topology.LLC] of the cache whose sharers it is; Unknown if it is not made by a cache
	CPUs Set
}

// A Topology describes a machine. It is immutable and may be used by any number
// of goroutines. Its methods do not block; those that return a single number or
// a struct do not allocate, and a pinned goroutine may call them.
//
// What says where the caller runs is hidden from the race detector, for callers
// that hide from it the edge by which they got the topology: a lock must not
// order its users after the goroutine that read the machine.
type Topology struct {
	machine
	cpus      []CPU // by id, up to the largest possible one
	nodeIndex []int // by id: index in machine.nodes, or Unknown
	domains   []Domain
	places    []int // CPU that stands in for the caller's P; nil on a real machine
}

// machine is what has been found out, before CPUs and nodes are indexed and
// domains are made.
type machine struct {
	source        string
	model         string   // of the processor; may be empty
	features      []string // that the processor tells about itself, for people
	cacheLine     int
	possible      Set // CPUs
	online        Set // subset of possible
	allowed       Set // subset of online
	possibleNodes Set
	nodes         []nodeInfo // online ones, by ascending id; never empty
	cores         []Set      // disjoint; no core is empty
	llcs          []Cache    // disjoint
	packages      []packageInfo
	classes       []Set // disjoint, fastest first; empty unless the machine is hybrid
}

type nodeInfo struct {
	NUMANode
	distance []int // to each of machine.nodes; nil if unknown
}

type packageInfo struct {
	id   int
	cpus Set
}

// newTopology indexes m and makes its domains.
func newTopology(m machine, g Grouping) *Topology {
	t := &Topology{machine: m}
	t.cpus = make([]CPU, m.possible.Max()+1)
	for id := range t.cpus {
		t.cpus[id] = unknownCPU(id)
	}
	for id := range m.online.All() {
		t.cpus[id].Online, t.cpus[id].Allowed, t.cpus[id].Class = true, m.allowed.Has(id), 0
	}
	t.nodeIndex = make([]int, m.nodes[len(m.nodes)-1].ID+1)
	for id := range t.nodeIndex {
		t.nodeIndex[id] = Unknown
	}
	for i, n := range m.nodes {
		t.nodeIndex[n.ID] = i
		t.each(n.CPUs, func(c *CPU) { c.Node = n.ID })
	}
	for i, cpus := range m.cores {
		t.each(cpus, func(c *CPU) { c.Core = i })
	}
	for i, llc := range m.llcs {
		t.each(llc.CPUs, func(c *CPU) { c.LLC = i })
	}
	for _, p := range m.packages {
		t.each(p.cpus, func(c *CPU) { c.Package = p.id })
	}
	for i, cpus := range m.classes {
		t.each(cpus, func(c *CPU) { c.Class = i })
	}
	t.domains = t.group(g)
	for i, d := range t.domains {
		t.each(d.CPUs, func(c *CPU) { c.Domain = i })
	}
	return t
}

func (t *Topology) each(cpus Set, f func(*CPU)) {
	for id := range cpus.All() {
		f(&t.cpus[id])
	}
}

// oneNode returns a machine of which only its online CPUs are known.
func oneNode(source string, online Set) machine {
	return machine{
		source:        source,
		cacheLine:     Unknown,
		possible:      online,
		online:        online,
		allowed:       online,
		possibleNodes: setOf(0),
		nodes:         []nodeInfo{{NUMANode: NUMANode{ID: 0, CPUs: online, HasMemory: true}}},
	}
}

// Possible returns the CPUs that may ever come online without a reboot.
func (t *Topology) Possible() Set { return t.possible }

// Online returns the CPUs that can run threads.
func (t *Topology) Online() Set { return t.online }

// Allowed returns the online CPUs that this process may use: those of the
// affinity of its main thread, which the kernel keeps inside the cpuset of its
// cgroup. It is never empty.
func (t *Topology) Allowed() Set { return t.allowed }

// CPU describes the CPU of the given id, which need not exist.
//
//go:norace
func (t *Topology) CPU(id int) CPU {
	if id < 0 || id >= len(t.cpus) {
		return unknownCPU(id)
	}
	return t.cpus[id]
}

// NumCores returns the number of cores that are known.
func (t *Topology) NumCores() int { return len(t.cores) }

// Core returns the online CPUs of core i, SMT siblings of each other.
// 0 <= i < NumCores.
func (t *Topology) Core(i int) Set { return t.cores[i] }

// NumLLCs returns the number of last-level caches that are known.
func (t *Topology) NumLLCs() int { return len(t.llcs) }

// LLC returns last-level cache i. 0 <= i < NumLLCs.
func (t *Topology) LLC(i int) Cache { return t.llcs[i] }

// CacheLine returns the size in bytes of the largest cache line that a CPU's
// caches use, or Unknown.
func (t *Topology) CacheLine() int { return t.cacheLine }

// NUMANodes returns the ids of the online NUMA nodes. They may have gaps. There
// is always one: node 0 where the machine does not speak of nodes.
func (t *Topology) NUMANodes() Set {
	var s Set
	for _, n := range t.nodes {
		s.addRange(n.ID, n.ID)
	}
	return s
}

// PossibleNUMANodes returns the ids of the NUMA nodes that may ever come online.
func (t *Topology) PossibleNUMANodes() Set { return t.possibleNodes }

// NUMANode returns the online NUMA node of the given id and whether there is one.
func (t *Topology) NUMANode(id int) (NUMANode, bool) {
	i := t.nodeAt(id)
	if i == Unknown {
		return NUMANode{ID: id}, false
	}
	return t.nodes[i].NUMANode, true
}

func (t *Topology) nodeAt(id int) int {
	if id < 0 || id >= len(t.nodeIndex) {
		return Unknown
	}
	return t.nodeIndex[id]
}

// Distance returns the relative cost, by the firmware's estimate, of reaching
// memory of NUMA node to from a CPU of NUMA node from. 10 is the cost of a
// node's own memory. It is Unknown if one of them is not online or the machine
// does not say.
func (t *Topology) Distance(from, to int) int {
	i, j := t.nodeAt(from), t.nodeAt(to)
	if i == Unknown || j == Unknown || t.nodes[i].distance == nil {
		return Unknown
	}
	return t.nodes[i].distance[j]
}

// NodeOf returns the id of the NUMA node of a CPU, or Unknown.
//
//go:norace
func (t *Topology) NodeOf(cpu int) int { return t.CPU(cpu).Node }

// NumDomains returns the number of locality domains, at least 1.
//
//go:norace
func (t *Topology) NumDomains() int { return len(t.domains) }

// Domain returns domain i. 0 <= i < NumDomains.
func (t *Topology) Domain(i int) Domain { return t.domains[i] }

// DomainOf returns the index of the domain of a CPU. It is Unknown for a CPU
// that was not online when the machine was read.
//
//go:norace
func (t *Topology) DomainOf(cpu int) int { return t.CPU(cpu).Domain }

// ActiveDomains returns the number of domains in which this process may use a
// CPU, at least 1. A process confined to one domain gains nothing from locality.
func (t *Topology) ActiveDomains() int {
	n := 0
	for _, d := range t.domains {
		if !d.CPUs.and(t.allowed).Empty() {
			n++
		}
	}
	return n
}
