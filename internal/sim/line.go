//go:build sim

package sim

import "math/bits"

// cacheLine is 64 bytes of memory: either one CPU has it exclusively or any number have copies. It serves one transfer at a
// time. When several CPUs wait for it, who gets it next is a matter of chance, in proportion to how near they are: a
// request from near arrives first.
type cacheLine struct {
	c         *costs
	home      int // socket of its memory
	owner     int // thread that wrote it last
	exclusive bool
	copies    []uint64 // bit i: thread i has a copy
	version   uint32   // how often it has changed hands

	busy     bool
	leaving  instant // if busy with taking it away: when the owner loses it
	taken    bool    // busy with making somebody its only holder
	queue    []*request
	spinners []*costThread
}

type requestKind uint8

const (
	forOperation requestKind = iota // the thread waits for it
	forStore                        // its store buffer does
	forLater                        // nobody does: prefetched
)

// request is a thread's wish for a line.
type request struct {
	by      *costThread
	line    *cacheLine
	own     bool
	kind    requestKind
	version uint32
}

func (l *cacheLine) has(t *costThread) bool { return l.copies[t.id/64]>>(t.id%64)&1 != 0 }

// readable reports whether t has a copy.
func (l *cacheLine) readable(t *costThread) bool {
	return l.has(t) && !(l.taken && l.c.now >= l.leaving)
}

// writable reports whether t has the line to itself.
func (l *cacheLine) writable(t *costThread) bool {
	return l.exclusive && l.owner == t.id && !(l.busy && l.c.now >= l.leaving)
}

// start makes the request.
func (r *request) start(l *cacheLine, own bool) {
	r.line, r.own = l, own
	l.queue = append(l.queue, r)
	if !l.busy {
		l.arbitrate()
	}
}

// arbitrate serves one of those who wait.
func (l *cacheLine) arbitrate() {
	if len(l.queue) == 0 {
		return
	}
	c, i := l.c, 0
	if len(l.queue) > 1 {
		i = l.draw()
	}
	r := l.queue[i]
	l.queue[i] = l.queue[len(l.queue)-1]
	l.queue = l.queue[:len(l.queue)-1]

	took := l.latency(r)
	arrival := c.now + took
	l.busy, l.taken, l.leaving = true, r.own, c.now+took/2
	r.version = l.version
	c.events.push(event{at: arrival, request: r})
	switch {
	case r.own: // once the operation is done that asked for it
		c.events.push(event{at: arrival + c.model.locked, line: l})
	case l.exclusive:
		c.events.push(event{at: arrival, line: l})
	default:
		c.events.push(event{at: c.now + c.model.pipelined, line: l})
	}
}

// draw chooses among those who wait, each with a weight of 1 over its latency.
func (l *cacheLine) draw() int {
	const unit = 1 << 32
	m, sum := &l.c.model, uint64(0)
	for _, r := range l.queue {
		sum += unit / uint64(m.between(l.c.threads[l.owner].cpu, r.by.cpu, l.home))
	}
	at := l.c.random(sum)
	for i, r := range l.queue {
		w := unit / uint64(m.between(l.c.threads[l.owner].cpu, r.by.cpu, l.home))
		if at < w {
			return i
		}
		at -= w
	}
	return len(l.queue) - 1
}

// latency is how long the line takes to the requester. One that has a copy and wants to be the only one waits for
// invalidations to go out, not for data to come back: half the way.
func (l *cacheLine) latency(r *request) instant {
	m, c := &l.c.model, l.c
	took := m.between(c.threads[l.owner].cpu, r.by.cpu, l.home)
	if l.exclusive {
		return took
	}
	others, farthest := instant(0), instant(0)
	for i, set := range l.copies {
		for ; set != 0; set &= set - 1 {
			o := c.threads[i*64+bits.TrailingZeros64(set)]
			if o == r.by {
				continue
			}
			d := m.between(o.cpu, r.by.cpu, l.home)
			if !r.own && d <= m.near {
				return d // a copy is in the reader's own last-level cache
			}
			others, farthest = others+1, max(farthest, d)
		}
	}
	switch {
	case !r.own || others == 0:
		return took
	case l.has(r.by):
		took = farthest / 2
	default:
		took = max(took, farthest)
	}
	return took + (others-1)*m.perSharer
}

// arrive gives the line to the requester.
func (r *request) arrive() {
	l, t := r.line, r.by
	c := l.c
	c.toll.Transfers++
	if c.prog.Machine.CPUs[t.cpu].Socket != c.prog.Machine.CPUs[c.threads[l.owner].cpu].Socket {
		c.toll.Remote++
	}
	switch bit := uint64(1) << (t.id % 64); {
	case r.own:
		l.version++
		clear(l.copies)
		l.copies[t.id/64] = bit
		l.owner, l.exclusive = t.id, true
		l.taken, l.leaving = false, c.now+c.model.locked // until the operation that asked for it is done
		spinners := l.spinners
		l.spinners = spinners[:0]
		for _, s := range spinners {
			if s == t { // for its store buffer, while it spins: it keeps its copy
				l.spinners = append(l.spinners, s)
			} else {
				s.disturb()
			}
		}
	case r.version == l.version:
		l.copies[t.id/64] |= bit
		l.exclusive = false
	}
	switch r.kind {
	case forOperation:
		t.resume()
	case forStore:
		t.fetched(r)
	case forLater:
		t.prefetched(r)
	}
}

// forget takes t off the list of spinners.
func (l *cacheLine) forget(t *costThread) {
	for i, s := range l.spinners {
		if s == t {
			last := len(l.spinners) - 1
			l.spinners[i] = l.spinners[last]
			l.spinners = l.spinners[:last]
			return
		}
	}
}

// --- latencies

// latencies are those of a Machine in picoseconds, with a table of how far CPUs are apart.
type latencies struct {
	apart [][]distance
	cost  [numDistances]instant
	far   [numDistances]instant // for a line whose home is on another socket than both
	near  instant               // within a last-level cache

	socket                                                             []int
	hit, locked, pause, perSharer, pipelined, wakeup, clock, scheduler instant
}

type distance uint8

const (
	sameCPU distance = iota
	sameCore
	sameCluster
	sameNode
	sameSocket
	crossSocket
	numDistances
)

func newLatencies(m *Machine) latencies {
	l := latencies{
		apart: make([][]distance, len(m.CPUs)), socket: make([]int, len(m.CPUs)),
		hit: instantOf(m.Hit), locked: instantOf(m.Locked), pause: instantOf(m.Pause), perSharer: instantOf(m.PerSharer),
		pipelined: instantOf(m.Pipelined), wakeup: instantOf(m.Wakeup), clock: instantOf(m.Clock), scheduler: instantOf(m.Scheduler),
	}
	l.cost = [...]instant{instantOf(m.Hit), instantOf(m.SameCore), instantOf(m.SameCluster), instantOf(m.SameNode),
		instantOf(m.SameSocket), instantOf(m.CrossSocket)}
	l.far, l.near = l.cost, l.cost[sameCluster]
	if m.RemoteHome != 0 {
		l.far[sameNode], l.far[sameSocket] = instantOf(m.RemoteHome), instantOf(m.RemoteHome)
	}
	for i, a := range m.CPUs {
		l.socket[i] = a.Socket
		l.apart[i] = make([]distance, len(m.CPUs))
		for j, b := range m.CPUs {
			l.apart[i][j] = a.apart(b, i == j)
		}
	}
	return l
}

func (a CPUPlace) apart(b CPUPlace, same bool) distance {
	switch {
	case same:
		return sameCPU
	case a.Core == b.Core:
		return sameCore
	case a.Cluster == b.Cluster:
		return sameCluster
	case a.Node == b.Node:
		return sameNode
	case a.Socket == b.Socket:
		return sameSocket
	}
	return crossSocket
}

// between is what it costs to move a line from one CPU to another.
func (m *latencies) between(from, to, home int) instant {
	if m.socket[to] != home {
		return m.far[m.apart[from][to]]
	}
	return m.cost[m.apart[from][to]]
}

// --- lines by address

// lineTable finds the line of an address: open addressing.
type lineTable struct {
	keys  []uintptr
	lines []*cacheLine
	used  int
}

func (x *lineTable) init() {
	x.keys, x.lines = make([]uintptr, 1024), make([]*cacheLine, 1024)
}

// of returns the line of the address; if it is new, its memory is at home where t is.
func (x *lineTable) of(a addr, t *costThread) *cacheLine {
	key := uintptr(a) >> 6
	i := x.slot(key)
	if x.keys[i] == key {
		return x.lines[i]
	}
	if x.used++; 2*x.used > len(x.keys) {
		x.grow()
		i = x.slot(key)
	}
	l := &cacheLine{c: t.c, home: t.c.model.socket[t.cpu], owner: t.id, exclusive: true, copies: make([]uint64, (len(t.c.threads)+63)/64)}
	l.copies[t.id/64] = 1 << (t.id % 64)
	x.keys[i], x.lines[i] = key, l
	return l
}

func (x *lineTable) slot(key uintptr) int {
	mask := len(x.keys) - 1
	i := int(key*0x9e3779b97f4a7c15>>20) & mask
	for x.keys[i] != 0 && x.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

func (x *lineTable) grow() {
	keys, lines := x.keys, x.lines
	x.keys, x.lines = make([]uintptr, 2*len(keys)), make([]*cacheLine, 2*len(keys))
	for i, key := range keys {
		if key != 0 {
			j := x.slot(key)
			x.keys[j], x.lines[j] = key, lines[i]
		}
	}
}
