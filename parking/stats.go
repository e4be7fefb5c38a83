package parking

import (
	"runtime"
	"slices"
	"time"

	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/race"
)

// Stats is what a table has done and is doing. Numbers of different fields may
// be of slightly different moments.
type Stats struct {
	Slots     int  // on each NUMA node; 0 = none yet, or the global hash
	Nodes     int  // NUMA nodes with slots
	Global    bool // the table uses the hash that all tables share; then Parked, Longest and the counts are of all of them
	Immutable bool

	Parked  int // goroutines in queues now; one in WaitV counts for each word
	Longest int // queues, that is addresses, in the fullest bucket now

	Parks     uint64 // times that a goroutine was queued
	Unparks   uint64 // times that one was taken off by a waker
	Requeues  uint64 // times that one was moved to another key
	Resizes   uint64 // generations of buckets after the first
	Contended uint64 // times that a bucket's lock was not free at once; 32 bits

	// Hierarchical is how many buckets' locks are in mode HQ now, and HQSwitches
	// how often a lock of the process has gone to that mode or back. See
	// hq.ReadStats for more.
	Hierarchical int
	HQSwitches   uint64

	// LongestPinned is for how long a resize kept a P from being preempted at
	// most, without times in which its thread seems to have been off its CPU.
	LongestPinned time.Duration
}

// Stats locks one bucket after the other. Waits in the hash that all tables share,
// as those on futex words without the flag Private, are told only if the table uses
// no other. The counts are kept in the buckets, so
// they cost an operation nothing but an addition to memory that it has written.
//
//go:norace
func (t *Table) Stats() Stats {
	race.Disable()
	t.resizing.Lock() // nothing migrates meanwhile
	defer race.Enable()
	defer t.resizing.Unlock()
	s := Stats{Resizes: t.resizes, LongestPinned: time.Duration(t.stretch.longest)}
	sum := t.past
	if h := t.current.Load(); h != nil {
		s.Nodes, s.Global, s.Immutable = max(1, len(h.arrays)), h.global, h.mode == fixed
		if !h.global {
			s.Slots = len(h.buckets)
		}
		h.each(func(b *bucket) {
			parked, queues := sum.include(b)
			s.Parked += parked
			s.Longest = max(s.Longest, queues)
			if b.lock.InHQ() {
				s.Hierarchical++
			}
		})
	}
	s.Parks, s.Unparks, s.Requeues, s.Contended = sum.parks, sum.unparks, sum.requeues, uint64(sum.contended)
	locks := hq.ReadStats()
	s.HQSwitches = locks.Inflations + locks.Deflations
	return s
}

// include adds a bucket's counts and returns how much is in it.
//
//go:norace
func (c *tally) include(b *bucket) (parked, queues int) {
	pin()
	b.lock.LockPinned()
	c.add(&b.tally)
	parked, queues = size(b.head)
	b.lock.UnlockPinned()
	unpin()
	return parked, queues
}

// size returns the number of waiters and of queues in the tree below q.
//
//go:norace
func size(q *waiter) (waiters, queues int) {
	if q == nil {
		return 0, 0
	}
	w0, q0 := size(q.child[0])
	w1, q1 := size(q.child[1])
	return int(q.length) + w0 + w1, 1 + q0 + q1
}

// WaiterInfo tells about one parked goroutine.
type WaiterInfo struct {
	Key    Key
	Waited time.Duration // 0 if it is Untimed
	Reason Reason
	Token  ParkToken

	// Stack is where the goroutine waits, program counters for
	// runtime.CallersFrames, if RecordStacks was on when it parked.
	Stack []uintptr
}

// maxFrames is the depth of recorded stacks.
const maxFrames = 32

// RecordStacks says whether goroutines that park from now on leave their stack
// for Waiters. It costs each of them about a microsecond, and memory.
func (t *Table) RecordStacks(on bool) {
	if on {
		t.stacks.Store(1)
	} else {
		t.stacks.Store(0)
	}
}

// A trace is the stack of a parked goroutine.
type trace struct {
	n   int
	pcs [maxFrames]uintptr
}

// newTrace returns the stack from the caller of its caller on, less skip frames.
//
//go:noinline
func newTrace(skip int) *trace {
	s := new(trace)
	s.n = runtime.Callers(skip+3, s.pcs[:])
	return s
}

// recordStack notes the stack from the caller of Park on, less skip frames. The
// caller is pinned, but not meanwhile.
//
//go:noinline
//go:norace
func (w *waiter) recordStack(skip int) {
	unpin()
	w.rare = &rare{stack: newTrace(skip + 1)}
	pin()
}

// Waiters calls f for the goroutines that are parked in the table until f returns
// false. It copies one bucket at a time, so who parks, leaves or is moved
// meanwhile may be missed or seen twice. f may block and use the table. Waiters
// in the global hash are those of this table only.
//
//go:norace
func (t *Table) Waiters(f func(WaiterInfo) bool) {
	var hashes []*hash
	race.Disable()
	for h := t.current.Load(); h != nil; h = h.next.Load() { // during a resize, in the direction of its moves
		hashes = append(hashes, h)
	}
	if h := t.home().global.Load(); h != nil && !slices.Contains(hashes, h) {
		hashes = append(hashes, h)
	}
	race.Enable()
	goOn := true
	for _, h := range hashes {
		h.each(func(b *bucket) {
			if goOn && b.count.Load() != 0 {
				for _, info := range t.copyBucket(b) {
					goOn = goOn && f(info)
				}
			}
		})
	}
}

// copyBucket describes the table's waiters in b. Nothing is allocated while b is
// locked: if the space does not do it starts over.
//
//go:norace
func (t *Table) copyBucket(b *bucket) []WaiterInfo {
	race.Disable()
	defer race.Enable()
	for room := int(b.count.Load()) + 4; ; room *= 2 {
		c := copier{owner: t.space.Load(), now: nanotime(), infos: make([]WaiterInfo, 0, room)}
		pin()
		b.lock.LockPinned()
		fits := c.tree(b.head)
		b.lock.UnlockPinned()
		unpin()
		if fits {
			return c.infos
		}
	}
}

type copier struct {
	owner uint32
	now   int64
	infos []WaiterInfo
}

// tree adds the waiters below q and reports whether there was room.
//
//go:norace
func (c *copier) tree(q *waiter) bool {
	if q == nil {
		return true
	}
	for w := q; w != nil; w = w.next {
		if w.owner != c.owner {
			continue
		}
		if len(c.infos) == cap(c.infos) {
			return false
		}
		key, _ := w.key()
		info := WaiterInfo{Key: key.public(), Reason: w.reason, Token: ParkToken(w.token)}
		if w.since != 0 {
			info.Waited = time.Duration(c.now - w.since)
		}
		if w.rare != nil && w.rare.stack != nil { // the record's next wait has another
			info.Stack = w.rare.stack.pcs[:w.rare.stack.n]
		}
		c.infos = append(c.infos, info)
	}
	return c.tree(q.child[0]) && c.tree(q.child[1])
}
