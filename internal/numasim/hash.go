//go:build sim

package numasim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hqsync/hqsync/internal/locks"
	"github.com/hqsync/hqsync/internal/sim"
)

// A Lookup is how a thread comes from a word to its bucket, if the table can be replaced while it is in use.
type Lookup string

// The designs of the published figures.
const (
	Global      Lookup = "global"       // the table is never replaced
	Refcount    Lookup = "refcount"     // a reference count on one line, taken and dropped by every operation
	Immutable   Lookup = "immutable"    // private, but never replaced: no count
	BackPointer Lookup = "back pointer" // a count per CPU; the table is found from the bucket, in look-up and put
	Pair        Lookup = "pair"         // a count per CPU; bucket and table are handed around together
)

// A HashRun models perf bench futex hash: every thread waits, by turns, on many words whose value is another than it says, so
// that each wait fails after a look-up and a visit to the bucket.
type HashRun struct {
	Machine *HashMachine
	Threads int
	Slots   int
	Aligned bool // a bucket has a cache line of its own; else 24 bytes
	Lookup  Lookup
	Words   int // of each thread
	Seed    uint64
}

// A HashMachine is where published figures come from, as far as is known.
type HashMachine struct {
	Text string
	sim.Machine
	// Call is what a wait takes beside waiting for cache lines, fitted on one published cell.
	Call   time.Duration
	Fitted string
}

// bucket is what a failing wait touches.
type bucket struct {
	lock    locks.QspinWord
	waiters sim.Uint32
	table   sim.Uint32 // the back pointer
	chain   [3]uint32
}

type alignedBucket struct {
	bucket
	_ [40]byte
}

// buckets returns a function from a slot to its bucket.
func buckets(slots int, aligned bool) func(slot int) *bucket {
	if aligned {
		b := make([]alignedBucket, slots)
		return func(i int) *bucket { return &b[i].bucket }
	}
	b := make([]bucket, slots)
	return func(i int) *bucket { return &b[i] }
}

// hold is what is done under a bucket's lock: the word is read and compared.
const hold = 60 * ns

// Rate returns the waits per second of a thread, the mean over all.
func (r HashRun) Rate() (float64, error) {
	at := buckets(r.Slots, r.Aligned)
	nodes := make(locks.Nodes, r.Threads)
	shared := new(struct {
		count sim.Uint32
		_     [60]byte
	})
	sum := 0.0
	wait := func(i, slot int) {
		b := at(slot)
		sim.Work(r.Machine.Call)
		switch r.Lookup {
		case Refcount:
			shared.count.Add(1)
		case BackPointer:
			sim.LoadPlain32(&b.table)
		}
		b.waiters.Add(1)
		b.lock.Lock(nodes, i)
		sim.Work(hold)
		b.lock.Unlock()
		b.waiters.Add(^uint32(0))
		switch r.Lookup {
		case Refcount:
			shared.count.Add(^uint32(0))
		case BackPointer:
			sim.LoadPlain32(&b.table)
		}
	}
	cpus := place(r.Machine.CPUs, false, r.Threads, r.Seed)
	program := sim.Costed{Name: fmt.Sprintf("hash of %d slots", r.Slots), Machine: r.Machine.Machine, CPU: cpus, Seed: r.Seed}
	for i := range r.Threads {
		slots := make([]int, r.Words)
		luck := rand.New(rand.NewPCG(r.Seed, uint64(i)))
		for w := range slots {
			slots[w] = luck.IntN(r.Slots)
		}
		program.Starts = append(program.Starts, time.Duration(luck.IntN(1000)))
		program.Threads = append(program.Threads, func() {
			for _, slot := range slots { // brings the lines to where they are used
				wait(i, slot)
			}
			begin := sim.Elapsed()
			for _, slot := range slots {
				wait(i, slot)
			}
			sum += float64(r.Words) / (sim.Elapsed() - begin).Seconds()
		})
	}
	_, err := sim.RunCosted(program)
	return sum / float64(r.Threads), err
}

// Machines of the published figures. Where these do not name a processor, one of its time with as many CPUs stands for it.
var (
	eightSockets = &HashMachine{
		Text: "80 cores on 8 sockets (of 2014; latencies are assumed)",
		Machine: sim.Machine{
			CPUs:     shape{8, 1, 1, 10, 1}.cpus(),
			SameCore: 50 * ns, SameCluster: 50 * ns, SameNode: 50 * ns, SameSocket: 50 * ns, CrossSocket: 300 * ns,
			Hit: 1 * ns, Locked: 8 * ns, Pause: 5 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		},
		Call: 770 * ns, Fitted: "32 threads, large and aligned: 1122115",
	}
	milan = &HashMachine{
		Text: "256 CPUs on 2 sockets (taken for EPYC 7763)",
		Machine: sim.Machine{
			CPUs:     shape{2, 1, 8, 8, 2}.cpus(),
			SameCore: 10 * ns, SameCluster: 25 * ns, SameNode: 115 * ns, SameSocket: 115 * ns, CrossSocket: 301 * ns,
			Hit: 1 * ns, Locked: 6 * ns, Pause: 15 * ns, PerSharer: 3 * ns, Pipelined: 5 * ns,
		},
		Call: 240 * ns, Fitted: "4096 slots: 1918687",
	}
	skylake = &HashMachine{
		Text: "112 CPUs on 2 sockets (Skylake; latencies of Cascade Lake)", Machine: cascadeLake(),
		Call: 280 * ns, Fitted: "4096 buckets, pair: 2240228",
	}
)

// A HashCell is a published figure, in waits per second and thread, with the run that models it.
type HashCell struct {
	Table, Row, Column string
	Published          float64
	HashRun
}

// HashCells lists the published figures, or few of each table.
func HashCells(few bool) (cells []HashCell) {
	add := func(table, row, column string, published float64, r HashRun) {
		r.Seed, r.Words = 1, 100
		cells = append(cells, HashCell{table, row, column, published, r})
	}
	for i, threads := range []int{32, 64, 80} {
		row := fmt.Sprintf("%d threads", threads)
		for j, kind := range []string{"256 packed", "256 aligned", "20480 packed", "20480 aligned"} {
			slots := 256
			if j >= 2 {
				slots = 20480
			}
			add("larger hash table, "+eightSockets.Text, row, kind, publishedTable[i][j],
				HashRun{Machine: eightSockets, Threads: threads, Slots: slots, Aligned: j%2 == 1, Lookup: Global})
		}
	}
	for i, rate := range publishedSlots {
		if few && i%3 != 0 {
			continue
		}
		slots := 2 << i
		add("number of slots, 240 threads, "+milan.Text, fmt.Sprintf("%d slots", slots), string(Global), rate,
			HashRun{Machine: milan, Threads: 240, Slots: slots, Aligned: true, Lookup: Global})
	}
	for i, pair := range publishedPairs {
		slots := 256 << i
		for j, design := range []Lookup{BackPointer, Pair} {
			add("look-up of a private hash, 112 threads, "+skylake.Text, fmt.Sprintf("%d buckets", slots), string(design), pair[j],
				HashRun{Machine: skylake, Threads: 112, Slots: slots, Aligned: true, Lookup: design})
		}
	}
	for i, pair := range publishedCounts {
		slots := []int{128, 8192}[i]
		for j, design := range []Lookup{Refcount, Immutable} {
			add("reference count of a private hash, 32 threads, "+skylake.Text, fmt.Sprintf("%d slots", slots), string(design), pair[j],
				HashRun{Machine: skylake, Threads: 32, Slots: slots, Aligned: true, Lookup: design})
		}
	}
	return cells
}

var (
	// Davidlohr Bueso, 2014: 32, 64 and 80 threads; 256 packed, aligned, 20480 packed, aligned. His larger numbers of threads
	// are more than the machine has CPUs.
	publishedTable = [][4]float64{{628412, 721401, 965996, 1122115}, {247667, 443740, 997300, 1145494}, {193559, 323425, 1028147, 1130304}}
	// Sebastian Siewior, 2024: from 2 slots on, doubling.
	publishedSlots = []float64{9158, 21666, 44687, 84144, 139998, 279957, 509533, 1019846, 1634940, 1834859, 1912071, 1918687, 1922286,
		1923017, 1923319, 1932906, 2042571}
	// Peter Zijlstra, 2026: -b 256 to 4096; before (back pointer) and after (pair).
	publishedPairs = [][2]float64{{464395, 587014}, {715687, 995943}, {995085, 1396328}, {1293114, 1668395}, {2124438, 2240228}}
	// Sebastian Siewior, 2025, 32 CPUs on 2 nodes: 128 and 8192 slots; counted and immutable.
	publishedCounts = [][2]float64{{141394, 851490}, {131321, 1923077}}
)
