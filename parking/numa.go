package parking

import (
	"math/bits"

	"github.com/hqsync/hqsync/internal/race"
)

// Bits of Key.Node above the node, which is its id + 1.
const (
	inGlobal = 1 << 31 // the key's buckets are those that all tables share
	shared   = 1 << 30 // the key is the same in all tables
	nodeMask = shared - 1
)

// sharedSpace is the number that stands for all tables; theirs begin at 1.
const sharedSpace = 0

// A domain is what tables share: the machine, and the global hash.
type domain struct {
	making resizeMutex // guards what follows while it is made
	global atomicPointer[hash]
	numa   atomicPointer[machine]

	// strays counts, by the numbers of their tables, the waiters that another table
	// has moved to another bucket. See evictGlobal.
	strays [64]atomicUint32
}

//go:norace
func (d *domain) straysOf(owner uint32) *atomicUint32 { return &d.strays[owner%uint32(len(d.strays))] }

// process is the domain of every table outside tests.
var process domain

// A machine is what this package wants to know about the one it runs on.
type machine struct {
	nodes []int             // ids of the possible NUMA nodes, ascending; never empty
	index []int             // by id: index in nodes, or -1
	cpus  int               // possible CPUs
	here  func() int        // id of the caller's node
	asks  func(uintptr) int // id of the node that the memory policy of an address prefers, or NoNode
}

func newMachine(nodes []int, cpus int, here func() int, asks func(uintptr) int) *machine {
	m := &machine{nodes: nodes, cpus: cpus, here: here, asks: asks, index: make([]int, nodes[len(nodes)-1]+1)}
	for id := range m.index {
		m.index[id] = -1
	}
	for i, id := range nodes {
		m.index[id] = i
	}
	return m
}

// possible reports whether a NUMA node of this id may come online.
//
//go:norace
func (m *machine) possible(id int) bool {
	return id >= 0 && id < len(m.index) && m.index[id] >= 0
}

// array returns which of a hash's arrays a key belongs to: that of its node, or,
// if it has none that there is, one chosen by further bits of its address.
//
//go:norace
func (m *machine) array(node uint32, path uint64) int {
	if id := int(node&nodeMask) - 1; m.possible(id) {
		return m.index[id]
	}
	i, _ := bits.Mul64(path, uint64(len(m.nodes)))
	return int(i)
}

// machine returns what the domain runs on. The first caller may have to read it
// from the system.
//
//go:norace
func (d *domain) machine() *machine {
	if m := d.numa.Load(); m != nil {
		return m
	}
	d.making.Lock()
	defer d.making.Unlock()
	if d.numa.Load() == nil {
		d.numa.Store(thisMachine())
	}
	return d.numa.Load()
}

// prepare finds out about the machine, the first time. That takes packages whose
// edges the race detector must see, so it comes before race.Disable.
//
//go:norace
func (t *Table) prepare() {
	if !race.Enabled {
		return // whoever needs it does it
	}
	race.Disable() // or all would seem ordered after the goroutine that came first
	done := t.home().numa.Load() != nil
	race.Enable()
	if !done {
		t.home().machine()
	}
}

// globalHash returns the hash that the domain's tables share: on each NUMA node
// 256 buckets for each of its CPUs, at least 4, rounded up to a power of two.
//
//go:norace
func (d *domain) globalHash() *hash {
	if h := d.global.Load(); h != nil {
		return h
	}
	m := d.machine()
	d.making.Lock()
	defer d.making.Unlock()
	if h := d.global.Load(); h != nil {
		return h
	}
	n := max(4, 256*m.cpus/len(m.nodes))
	h, err := newHash(1<<bits.Len(uint(n-1)), multiplier(0), fixed, m)
	if err != nil { // no memory for arrays of their own: one for all
		alone := newMachine(m.nodes[:1], m.cpus, m.here, m.asks)
		h, _ = newHash(1<<bits.Len(uint(n-1)), multiplier(0), fixed, alone)
	}
	h.global = true
	d.global.Store(h)
	return h
}

// mapped is the number of buckets in memory of the system's.
var mapped atomicInt64

// placeBuckets returns an array of n buckets for each of the NUMA nodes, on that
// node as far as the system allows.
func placeBuckets(n int, nodes []int) ([][]bucket, error) {
	arrays := make([][]bucket, 0, len(nodes))
	for _, id := range nodes {
		a, err := mapBuckets(n, id)
		if err != nil {
			freeBuckets(arrays)
			return nil, err
		}
		arrays = append(arrays, a)
		mapped.Add(int64(n))
	}
	return arrays, nil
}

// freeBuckets gives the memory of arrays back. Nobody may know a bucket of them.
func freeBuckets(arrays [][]bucket) {
	for _, a := range arrays {
		mapped.Add(-int64(len(a)))
		unmapBuckets(a)
	}
}
