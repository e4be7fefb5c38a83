//go:build !sim

package parking

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/rt"
)

// Records that are not in use are kept in magazines, after Bonwick and Adams,
// "Magazines and Vmem" (USENIX 2001). Each P has two: to take a record or to give
// one back is a few loads and stores under the pin that a wait needs anyway. Only
// once for as many records as a magazine holds does a P turn to the depot, which
// takes more stack than a goroutine that is about to sleep has left of its first
// 2 KiB, and doubles it.

// A magazine is a chain of records through next.
type magazine struct {
	top   *waiter
	count int
}

//go:norace
func (m *magazine) push(w *waiter) {
	w.next, m.top = m.top, w
	m.count++
}

// pop returns nil if m is empty.
//
//go:norace
func (m *magazine) pop() (w *waiter) {
	if w = m.top; w != nil {
		w.next, m.top = nil, w.next
		m.count--
	}
	return w
}

// A rack has the two magazines of a P, for whoever is pinned to it.
type rack struct {
	inUse   magazine
	reserve magazine // full or empty
	_       [96]byte
}

// racks are indexed by the number of a P. A larger array comes empty, and takes
// the place of a smaller one that others may still be using: what they put there
// is garbage.
var (
	racks       atomic.Pointer[[]rack]
	makingRacks sync.Mutex
)

// depot has the magazines of no rack, each by its first record, which has the count
// in length.
var depot sync.Pool

// rackOf returns the rack of P number p, or nil.
//
//go:norace
func rackOf(p int) *rack {
	if list := racks.Load(); rt.Pinnable && list != nil && p < len(*list) {
		return &(*list)[p]
	}
	return nil
}

// takeRecord returns a record of P number p, to which the caller is pinned, or nil.
//
//go:norace
func takeRecord(p int) *waiter {
	r := rackOf(p)
	if r == nil {
		return nil
	}
	if r.inUse.top == nil {
		r.inUse, r.reserve = r.reserve, magazine{}
	}
	return r.inUse.pop()
}

// putRecord gives w to P number p, to which the caller is pinned. A magazine for
// which there is no room is for the caller to deposit.
//
//go:norace
func putRecord(p int, w *waiter) (spilled magazine) {
	r := rackOf(p)
	if r == nil {
		return magazine{w, 1}
	}
	if r.inUse.count == magazineSize {
		spilled, r.reserve, r.inUse = r.reserve, r.inUse, magazine{}
	}
	r.inUse.push(w)
	return spilled
}

// pinWithRecord returns with the caller pinned and a record. To allocate takes more
// of the stack than anything else on the way to sleep: it has no callers between.
//
//go:norace
func pinWithRecord() *waiter {
	if w := takeRecord(pin()); w != nil {
		return w
	}
	unpin()
	if first, ok := depot.Get().(*waiter); ok {
		return stock(first.magazine())
	}
	return stock(newMagazine())
}

// stock gives m, which is not empty, to the P, unless the caller has been moved to
// one that has records. It returns with the caller pinned and a record.
//
//go:noinline
//go:norace
func stock(m magazine) (w *waiter) {
	w = m.pop()
	r := rackOf(pin())
	if r != nil && r.inUse.top == nil {
		r.inUse = m
		return w
	}
	unpin()
	if r == nil {
		makeRacks()
	}
	m.deposit()
	pin()
	return w
}

// magazine returns the one that was deposited by its first record.
//
//go:norace
func (w *waiter) magazine() magazine {
	m := magazine{w, int(w.length)}
	w.length = 0
	return m
}

// deposit gives m, which may be empty, to whoever needs it. The caller is not
// pinned.
//
//go:norace
func (m magazine) deposit() {
	if m.top != nil {
		m.top.length = uint32(m.count)
		depot.Put(m.top)
	}
}

// newMagazine makes a full one, or where goroutines cannot be pinned, and there are
// no racks, a single record.
//
//go:norace
func newMagazine() (m magazine) {
	if !rt.Pinnable {
		m.push(new(waiter))
		return m
	}
	records := new([magazineSize]waiter)
	for i := range records {
		m.push(&records[i])
	}
	return m
}

// makeRacks makes a rack for every P.
//
//go:norace
func makeRacks() {
	if !rt.Pinnable {
		return
	}
	makingRacks.Lock()
	defer makingRacks.Unlock()
	n := runtime.GOMAXPROCS(0)
	if list := racks.Load(); list == nil || len(*list) < n {
		bigger := make([]rack, n)
		racks.Store(&bigger)
	}
}
