//go:build sim

package sim

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A Machine is a computer as far as its caches go: what it costs to move a cache line, by how far the two CPUs are apart.
// All latencies are for one transfer including the operation that asked for it.
type Machine struct {
	CPUs []CPUPlace

	SameCore    time.Duration // between hardware threads of one core
	SameCluster time.Duration // of cores that share a last-level cache, or a part of it of their own
	SameNode    time.Duration // as NUMA nodes of the hardware are: a quadrant, a die
	SameSocket  time.Duration
	CrossSocket time.Duration
	// RemoteHome replaces SameNode and SameSocket for a line whose memory is on another socket; 0: no difference.
	RemoteHome time.Duration

	Hit       time.Duration // load or store of a line that the CPU has
	Locked    time.Duration // read-modify-write of a line that the CPU has
	Pause     time.Duration // the wait hint of a spin loop
	PerSharer time.Duration // to invalidate one more copy
	Pipelined time.Duration // between two reads of a line that nobody has exclusively
	Wakeup    time.Duration // from Unpark until the thread runs
	Clock     time.Duration // reading the clock
	Scheduler time.Duration // to park or to yield
}

// A CPUPlace says where a CPU is. Numbers count from 0 over the whole machine.
type CPUPlace struct{ Core, Cluster, Node, Socket int }

// A Costed is a program for a Machine: threads, each on a CPU of its own, that run the code under test for as long as they
// like. The seam's words are on cache lines of 64 bytes by their real addresses; a line's memory is on the socket of the
// thread that touched it first.
type Costed struct {
	Name    string
	Machine Machine
	CPU     []int           // of each thread
	Threads []func()        // run to their end
	Setup   func()          // before they begin; may be nil. Procs counts the machine's CPUs
	Starts  []time.Duration // when each thread begins; short or nil: 0
	Domains []int           // of each CPU, for Domain
	Nodes   []int           // of each CPU, for Node
	Seed    uint64          // of arbitration, jitter and Rand
	Limit   time.Duration   // simulated time after which it is an error that threads still run; 0: a minute
}

// A Toll is what a Costed has cost.
type Toll struct {
	Elapsed   time.Duration // simulated, until the last thread ended
	Transfers int64         // of lines from one CPU to another, by far the most of the elapsed time
	Remote    int64         // those between sockets
	Steps     int64         // operations on shared words
}

// RunCosted runs the program in simulated time: the thread with the least clock goes first, each operation takes as long as
// its cache line needs to come. The same program and seed give the same result. It returns an error if threads wait for
// each other for ever, or longer than the limit.
func RunCosted(p Costed) (toll Toll, err error) {
	if len(p.CPU) != len(p.Threads) || len(p.Threads) == 0 {
		return Toll{}, fmt.Errorf("sim: %s has %d threads and %d CPUs for them, want the same number of each and at least 1", p.Name, len(p.Threads), len(p.CPU))
	}
	for _, cpu := range p.CPU {
		if cpu < 0 || cpu >= len(p.Machine.CPUs) {
			return Toll{}, fmt.Errorf("sim: %s has a thread on CPU %d, the machine has CPUs 0 to %d", p.Name, cpu, len(p.Machine.CPUs)-1)
		}
	}
	var died any
	done := make(chan struct{})
	go func() { // on a goroutine of its own, for the label
		defer close(done)
		defer func() { died = recover() }()
		toll, err = newCosts(p).run()
	}()
	<-done
	if died != nil {
		panic(died)
	}
	return toll, err
}

// instant is simulated time in picoseconds.
type instant int64

func instantOf(d time.Duration) instant { return instant(d) * 1000 }

func (i instant) duration() time.Duration { return time.Duration(i / 1000) }

// costs is the engine of a cost model: a queue of events in simulated time. As in the checker, one coroutine runs at a time.
type costs struct {
	*engine
	prog    Costed
	model   latencies
	events  eventQueue
	now     instant
	limit   instant
	lines   lineTable
	threads []*costThread
	running int // threads that have not ended
	luck    uint64
	toll    Toll
}

// costThread is a thread in a cost model.
type costThread struct {
	thread
	c    *costs
	cpu  int
	at   instant      // its clock
	due  uint64       // number of the event that resumes it; others are outdated
	seen []*cacheLine // lines that it has read since its last Pause, while it has a copy of them
	// waiting: it is in the list of spinners of each line in seen
	waiting  bool
	sleeping bool
	clocked  bool // it has read the clock since it last ran out of patience: a Pause may then not last for ever

	access   request // for the operation that it waits for
	buffer   []bufferedStore
	awaiting bool // it waits for the buffer to be empty
	// The store buffer asks at once for every line that it needs, and writes in order.
	ahead  []*request
	spare  []*request
	early  []*request // reads ahead of an operation that will want them
	missed *cacheLine // the operation that the thread is in waits for an early read of this line
}

// bufferedStore is a store that waits for its line.
type bufferedStore struct {
	line  *cacheLine
	at    addr
	width width
	mask  uint64
	v     value
}

const storeBuffer = 48 // entries

func newCosts(p Costed) *costs {
	c := &costs{
		engine: newEngine(Program{Name: p.Name}, Options{Domains: p.Domains, Nodes: p.Nodes, Seed: p.Seed, Procs: len(p.Machine.CPUs)}),
		prog:   p,
		model:  newLatencies(&p.Machine),
		luck:   p.Seed*2 + 1,
	}
	c.reset()
	c.lines.init()
	if c.prog.Limit == 0 {
		c.prog.Limit = time.Minute
	}
	c.limit = instantOf(c.prog.Limit)
	return c
}

func (c *costs) run() (Toll, error) {
	c.mark()
	c.publish()
	defer c.withdraw()
	if c.prog.Setup != nil {
		c.prog.Setup()
	}
	for i, f := range c.prog.Threads {
		t := c.spawn(i, f)
		if i < len(c.prog.Starts) {
			t.at = instantOf(c.prog.Starts[i])
		}
		c.resumeAt(t, t.at)
	}
	defer func() {
		for _, t := range c.threads {
			t.stop()
		}
	}()
	c.running = len(c.threads)
	for c.running > 0 {
		if len(c.events.heap) == 0 {
			return c.toll, fmt.Errorf("sim: %s: after %v of simulated time %d threads wait for ever", c.prog.Name, c.now.duration(), c.running)
		}
		ev := c.events.pop()
		c.now = ev.at
		if c.now > c.limit {
			return c.toll, fmt.Errorf("sim: %s: %d threads still run after %v of simulated time", c.prog.Name, c.running, c.prog.Limit)
		}
		switch {
		case ev.request != nil:
			ev.request.arrive()
		case ev.line != nil:
			ev.line.busy = false
			ev.line.arbitrate()
		case ev.seq == ev.thread.due:
			ev.thread.resume()
		}
	}
	c.toll.Elapsed = c.now.duration()
	return c.toll, nil
}

func (c *costs) spawn(i int, f func()) *costThread {
	t := &costThread{c: c, cpu: c.prog.CPU[i]}
	t.thread = thread{e: c.engine, id: i, name: fmt.Sprintf("T%d", i), cost: t, p: i}
	t.access = request{by: t}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if v := recover(); v != nil {
				if _, aborted := v.(errAborted); !aborted {
					panic(v)
				}
			}
		}()
		f()
		t.flush()
		c.running--
	})
	c.threads = append(c.threads, t)
	return t
}

// resume lets the thread run at the present time.
func (t *costThread) resume() {
	t.at = t.c.now
	t.e.cur = &t.thread
	t.thread.next()
	t.e.cur = nil
}

// suspend gives way until an event resumes the thread.
func (t *costThread) suspend() {
	if !t.yield(struct{}{}) {
		panic(errAborted{})
	}
}

func (c *costs) resumeAt(t *costThread, at instant) { t.due = c.events.push(event{at: at, thread: t}) }

// elapse moves the thread's clock on.
func (t *costThread) elapse(d instant) { t.at += d }

// turn waits until nothing happens before the thread's clock.
func (t *costThread) turn() {
	if h := t.c.events.heap; len(h) > 0 && h[0].at <= t.at || t.at > t.c.limit {
		t.c.resumeAt(t, t.at)
		t.suspend()
	}
	t.c.now = t.at
}

// random returns pseudo-random bits below n.
func (c *costs) random(n uint64) uint64 {
	c.luck ^= c.luck << 13
	c.luck ^= c.luck >> 7
	c.luck ^= c.luck << 17
	return c.luck % n
}

// --- accesses

// load is thread.load in a cost model.
func (t *costThread) load(a addr, wd width) value {
	t.begin()
	if t.nosched > 0 {
		t.own(t.c.lines.of(a, t))
		return peekAt(a, wd)
	}
	l := t.c.lines.of(a, t)
	if v, ok := t.forward(a); ok {
		t.elapse(t.c.model.hit)
		t.note(l)
		return v
	}
	t.awaitEarly(l)
	if l.readable(t) {
		t.elapse(t.c.model.hit)
	} else {
		t.request(l, false)
	}
	t.note(l)
	return peekAt(a, wd)
}

// prefetch asks for a copy of the line for a load that is to come: an out-of-order processor has all loads under way that do
// not depend on each other.
func (t *costThread) prefetch(a addr) {
	t.begin()
	l := t.c.lines.of(a, t)
	if l.readable(t) {
		return
	}
	r := &request{by: t, kind: forLater}
	t.early = append(t.early, r)
	r.start(l, false)
}

func (t *costThread) prefetched(r *request) {
	i := slices.Index(t.early, r)
	t.early = slices.Delete(t.early, i, i+1)
	if t.missed == r.line {
		t.missed = nil
		t.c.resumeAt(t, t.c.now)
	}
}

// awaitEarly waits until a line has come that was prefetched.
func (t *costThread) awaitEarly(l *cacheLine) {
	for _, r := range t.early {
		if r.line == l {
			t.missed = l
			t.suspend()
			return
		}
	}
}

// forward returns what the thread's own buffered stores make of the word.
func (t *costThread) forward(a addr) (v value, ok bool) {
	for i := len(t.buffer) - 1; i >= 0; i-- {
		s := &t.buffer[i]
		if s.at != a {
			continue
		}
		if s.mask != wholeWord {
			t.flush() // part of the word is in the buffer, part in the cache: the load waits
			return value{}, false
		}
		return s.v, true
	}
	return value{}, false
}

// wholeWord is the mask of a store that leaves nothing of the word.
const wholeWord = ^uint64(0)

// store is a store that the CPU may buffer.
func (t *costThread) store(a addr, wd width, mask uint64, v value) {
	t.begin()
	t.elapse(t.c.model.hit)
	l := t.c.lines.of(a, t)
	if t.nosched > 0 || len(t.buffer) == 0 && l.writable(t) {
		(bufferedStore{l, a, wd, mask, v}).apply()
		return
	}
	if len(t.buffer) == storeBuffer {
		t.flush()
	}
	t.buffer = append(t.buffer, bufferedStore{l, a, wd, mask, v})
	t.fetch(l)
}

// fetch asks for a line on behalf of the store buffer.
func (t *costThread) fetch(l *cacheLine) {
	if l.writable(t) {
		return
	}
	for _, r := range t.ahead {
		if r.line == l {
			return
		}
	}
	var r *request
	if n := len(t.spare); n > 0 {
		r, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		r = &request{by: t, kind: forStore}
	}
	t.ahead = append(t.ahead, r)
	r.start(l, true)
}

func (s bufferedStore) apply() {
	if s.mask != wholeWord {
		s.v.n |= peekAt(s.at, s.width).n &^ s.mask
	}
	pokeAt(s.at, s.width, s.v)
}

// fetched goes on with the store buffer when a line has come that it asked for.
func (t *costThread) fetched(r *request) {
	i := slices.Index(t.ahead, r)
	t.ahead = slices.Delete(t.ahead, i, i+1)
	t.spare = append(t.spare, r)
	n := 0
	for n < len(t.buffer) && t.buffer[n].line.writable(t) {
		t.buffer[n].apply()
		n++
	}
	t.buffer = slices.Delete(t.buffer, 0, n)
	if len(t.buffer) > 0 {
		t.fetch(t.buffer[0].line)
	} else if t.awaiting {
		t.awaiting = false
		t.c.resumeAt(t, t.c.now)
	}
}

// flush waits until the store buffer is empty.
func (t *costThread) flush() {
	if len(t.buffer) > 0 {
		t.awaiting = true
		t.suspend()
	}
}

// update is thread.update in a cost model. A locked instruction drains the store buffer, and takes the line even if it
// writes nothing.
func (t *costThread) update(a addr, wd width, op opcode, x, y value) (value, bool) {
	t.begin()
	t.own(t.c.lines.of(a, t))
	old := peekAt(a, wd)
	v, write := op.apply(old, x, y)
	if wd == word32 {
		v.n = uint64(uint32(v.n))
	}
	if write {
		pokeAt(a, wd, v)
	}
	t.elapse(t.c.model.locked)
	return old, write
}

// own makes the thread the line's only holder.
func (t *costThread) own(l *cacheLine) {
	t.flush()
	if !l.writable(t) {
		t.request(l, true)
	}
	t.note(l)
}

func (t *costThread) begin() {
	t.turn()
	t.c.toll.Steps++
}

// step is any operation of the engine that touches no word.
func (t *costThread) step() {
	t.begin()
	t.elapse(t.c.model.hit)
}

// atomically runs f as one locked instruction on one line.
func (t *costThread) atomically(f func()) {
	t.flush()
	t.nosched++
	f()
	t.nosched--
	t.elapse(t.c.model.locked)
}

// request waits for the line.
func (t *costThread) request(l *cacheLine, own bool) {
	t.access.start(l, own)
	t.suspend()
}

// --- waiting

// note remembers that the thread has looked at the line.
func (t *costThread) note(l *cacheLine) {
	for _, o := range t.seen {
		if o == l {
			return
		}
	}
	t.seen = append(t.seen, l)
}

// pause is Pause in a cost model: the loop around it sees nothing new until one of the lines it has read is taken away.
// One that has asked for the time comes round now and then, to ask again.
func (t *costThread) pause() {
	t.elapse(t.c.model.pause)
	t.turn()
	if len(t.seen) == 0 {
		return
	}
	for _, l := range t.seen {
		if !l.readable(t) {
			t.seen = t.seen[:0]
			return
		}
	}
	for _, l := range t.seen {
		l.spinners = append(l.spinners, t)
	}
	t.waiting = true
	if t.clocked {
		t.c.resumeAt(t, t.at+clockEvery)
	}
	t.suspend()
	t.waiting = false
	for _, l := range t.seen {
		l.forget(t)
	}
	t.seen = t.seen[:0]
}

// awaitNot is thread.awaitNot in a cost model.
func (t *costThread) awaitNot(a addr, wd width, v value) value {
	for {
		if now := t.load(a, wd); now != v {
			return now
		}
		t.pause()
	}
}

// clockEvery is how long a thread rests in a loop that looks at the clock.
const clockEvery instant = 2_000_000

// disturb resumes a spinning thread, which will find that the line has gone, somewhere within its round.
func (t *costThread) disturb() {
	if t.waiting {
		t.waiting = false
		t.c.resumeAt(t, t.c.now+instant(t.c.random(uint64(t.c.model.pause)+1)))
	}
}

// backOff spends n rounds without looking.
func (t *costThread) backOff(n uint32) {
	t.seen = t.seen[:0]
	t.elapse(instant(n) * t.c.model.pause)
}

// Prefetch64 begins a load that another operation will need the result of. Outside a cost model it does nothing.
func Prefetch64(x *Uint64) {
	if t := current(); t != nil && t.cost != nil {
		t.cost.prefetch(addr64(&x.v))
	}
}

// Work spends the given time on nothing shared. Outside a cost model it does nothing.
func Work(d time.Duration) {
	if t := current(); t != nil && t.cost != nil {
		t.cost.elapse(instantOf(d))
	}
}

// Elapsed returns the simulated time of the calling thread of a cost model, 0 elsewhere. Looking costs it nothing.
func Elapsed() time.Duration {
	if t := current(); t != nil && t.cost != nil {
		return t.cost.at.duration()
	}
	return 0
}

// nanotime is Nanotime in a cost model.
func (t *costThread) nanotime() int64 {
	t.clocked = true
	t.elapse(t.c.model.clock)
	return int64(t.at/1000) + 1
}

// sleep is thread.block in a cost model: until rouse.
func (t *costThread) sleep() {
	t.flush()
	t.seen, t.clocked = t.seen[:0], false
	t.elapse(t.c.model.scheduler)
	if t.turn(); t.status != ready {
		t.sleeping = true
		t.suspend()
	}
}

// rouse makes a thread run that sleeps, or is about to.
func (t *costThread) rouse(o *costThread) {
	if o.sleeping {
		o.sleeping = false
		t.c.resumeAt(o, t.at+t.c.model.wakeup)
	}
}

// yieldCPU is Yield in a cost model: nobody else wants the CPU.
func (t *costThread) yieldCPU() {
	t.flush()
	t.seen = t.seen[:0]
	t.elapse(t.c.model.scheduler)
}

// --- events

// event is something that happens at a time: a request gets its line, a line is free, or a thread goes on.
type event struct {
	at      instant
	seq     uint64
	request *request
	line    *cacheLine
	thread  *costThread
}

// eventQueue is a binary heap.
type eventQueue struct {
	heap []event
	seq  uint64
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (q *eventQueue) push(ev event) (seq uint64) {
	q.seq++
	ev.seq = q.seq
	h := append(q.heap, ev)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].before(&ev) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = ev
	q.heap = h
	return ev.seq
}

func (q *eventQueue) pop() event {
	h := q.heap
	first, n := h[0], len(h)-1
	last := h[n]
	h[n] = event{}
	h = h[:n]
	q.heap = h
	if n == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && h[down+1].before(&h[down]) {
			down++
		}
		if last.before(&h[down]) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return first
}
