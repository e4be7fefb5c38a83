//go:build !sync2_std

package sync2

import "github.com/hqsync/hqsync/internal/rt"

// counters is where readers of one RWMutex are counted while they come from
// several Ps: RLock and RUnlock then touch no memory that other Ps write. See
// rwmutex.go for the protocol.
//
// They appear under read contention, when readers keep changing the word between
// the load and the add of others; and the writer that next has the lock for
// itself takes them away, for inhibition times what its fence took. So writers
// spend a tenth of their time on fences at most. The memory stays with the lock.
type counters struct {
	each []counter // by number of the P

	_      [lineSize]byte
	moved  int64        // part of the sum that release moved here; guarded by RWMutex.w
	goal   atomicInt64  // what count must become; written by the pending writer
	late   atomicUint32 // departures that were in a counter before their goroutine saw writer
	until  atomicInt64  // monotonic ns; not to be switched on before
	fenced int64        // ns that the last fence took; guarded by RWMutex.w
}

// A counter has a line of memory to itself.
type counter struct {
	n atomicInt64
	_ [lineSize - 8]byte
}

const (
	lineSize    = 64
	inhibition  = 9
	clashesMost = 16 // disturbed readers until the counters are switched on
)

// newCounters returns counters for n Ps.
func newCounters(n int) *counters { return &counters{each: make([]counter, n)} }

// grow switches the counters on after enough clashes (T10). The caller is inside
// as a reader.
func (rw *RWMutex) grow() {
	if !perPReaders || rw.state.Load()&rwCounted != 0 || !many() {
		return
	}
	if n := rw.clashes.Load(); n < growAfter() {
		rw.clashes.Store(n + 1) // one that gets lost does not matter
		return
	}
	rw.clashes.Store(0)
	c := rw.counters.Load()
	if c == nil {
		if c = pooledCounters(); c == nil {
			return
		}
		if !rw.counters.CompareAndSwap(nil, c) {
			c = rw.counters.Load()
		}
	}
	s := rw.state.Load()
	free := s&rwWriter == 0 || mutant("rwmutex: counters switched on under a writer")
	if free && s&rwCounted == 0 && c.allowed() {
		rw.state.CompareAndSwap(s, s|rwCounted) // T10
	}
}

// enterCounted counts the calling goroutine in its P's counter, and reports
// whether it is in. RLock is skip frames above.
func (rw *RWMutex) enterCounted(skip int) bool {
	c := rw.counters.Load()
	p := pin()
	if p >= len(c.each) { // GOMAXPROCS has grown
		unpin()
		n := rw.state.Add(rwReader) // T1, T2
		return n&rwWriter == 0 || rw.entered(n, skip+1)
	}
	bump(&c.each[p].n, 1) // C1
	if rw.state.Load()&(rwWriter|rwCounted) == rwCounted {
		unpin()
		return true
	}
	if mutant("rwmutex: taken back on another P") {
		unpin()
		p = pin()
	}
	bump(&c.each[p].n, -1) // C2
	writer := rw.state.Load()&rwWriter != 0 && !mutant("rwmutex: taken back by the first look")
	unpin()
	if writer && !mutant("rwmutex: taken back without a word") {
		rw.leftLate(c, skip+1)
	}
	return false
}

// leaveCounted is RUnlock by C3, if the P has a counter.
func (rw *RWMutex) leaveCounted() bool {
	c := rw.counters.Load()
	p := pin()
	if p >= len(c.each) {
		unpin()
		return false
	}
	bump(&c.each[p].n, -1) // C3
	writer := rw.state.Load()&rwWriter != 0
	unpin()
	if writer && !mutant("rwmutex: RUnlock does not look again") {
		charge(rw.leftLate(c, 2), 1)
	}
	return true
}

// leftLate tells a writer that it may have summed up too early (I4).
func (rw *RWMutex) leftLate(c *counters, skip int) (delay int64) {
	if !mutant("rwmutex: late departures are not counted") {
		c.late.Add(1)
	}
	return rw.unparkWriter(skip + 1)
}

// fence makes the writer see every counter store whose goroutine has not seen
// writer.
func (c *counters) fence() {
	prepareFence()
	start := rt.Nanotime()
	if !mutant("rwmutex: no fence") {
		pin()
		heavyFence()
		unpin()
	}
	c.fenced = rt.Nanotime() - start
}

// sum is exact or too high (I2).
func (c *counters) sum() int64 {
	n := c.moved
	if mutant("rwmutex: writer ignores the counters") {
		return n
	}
	for i := range c.each {
		n += c.each[i].n.Load()
	}
	return n
}

// settle returns what release adds to the word: it moves the count of this
// phase into the sum, which keeps both small, and makes the sum 0 after a sole
// writer, who may then switch the counters off (I6).
func (c *counters) settle(sole bool) (delta int32) {
	k := c.goal.Load()
	if mutant("rwmutex: counters switched off without settling") {
		k = 0
	}
	c.moved += k
	delta = -int32(k) * rwReader
	if sole && takenAway() || mutant("rwmutex: switched off by a writer that gave up") {
		delta -= rwCounted
		c.until.Store(rt.Nanotime() + inhibition*c.fenced)
	}
	return delta
}

// allowed reports whether the time of inhibition is over.
func (c *counters) allowed() bool { return rt.Nanotime() >= c.until.Load() }
