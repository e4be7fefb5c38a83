//go:build sim

package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// status says whether a thread can run and what it waits for otherwise.
type status uint8

const (
	ready   status = iota
	paused         // in Pause: until a word of its read set changes
	parked         // until Unpark
	fencing        // in HeavyFence: until the fence has reached every other thread
	asleep         // until its timer fires
	done
)

func (s status) String() string {
	return [...]string{"can run", "spins", "is parked", "waits for a heavy fence", "sleeps", "has ended"}[s]
}

// thread is a simulated goroutine, carried by a coroutine that serves one thread per schedule.
type thread struct {
	e    *engine
	cost *costThread // not nil: in a cost model
	id   int
	name string
	fn   func()

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	begun bool // the coroutine is inside fn
	dead  bool // the coroutine ended by runtime.Goexit and cannot be used again

	status  status
	guard   *word // what it is about to do needs this word not to be bar
	bar     value
	joined  bool    // the next operation follows without a scheduling point, but as a step
	skip    bool    // the next operation was chosen together with what led to it: no scheduling point before it
	yielded bool    // gave way: others first
	free    bool    // switching away from it is not a preemption
	after   *thread // RunNext: must give way first
	nosched int     // inside Atomically
	going   going   // in Gopark

	hash   uint64 // of everything the thread has observed
	reads  readSet
	buf    []store            // TSO: the store buffer, oldest first
	seen   view               // AcqRel: the oldest message of each word that may still be read
	drains uint64             // entries that have left buf
	goals  [maxThreads]uint64 // TSO: drains of the others that its HeavyFence waits for

	pins   int
	p      int // P it was last on
	rand   uint64
	stamp  uint64 // changes with every operation that could tell others of an object
	serial uint64 // of its timers

	op      opcode // what it is about to do or does
	on      *word
	limited bool // its wait ends when the clock says so
	late    bool // it did
	until   int64

	why   string // it is blocked
	where int    // step at which it blocked
}

// errAborted unwinds the stack of a thread whose schedule is over.
type errAborted struct{}

func (errAborted) Error() string { return "sim: the schedule is over" }

// spawn gives the next slot to a thread that is going to run f.
func (e *engine) spawn(name string, f func(), origin uint64) *thread {
	id, past := e.n, uint64(0)
	if id == maxThreads {
		id = e.ended()
		past = e.threads[id].hash
		e.vacate(e.threads[id])
	} else {
		e.n++
	}
	if id == len(e.threads) {
		e.threads = append(e.threads, nil)
	}
	t := e.threads[id]
	if t != nil && t.dead {
		t.dismiss()
		t = nil
	}
	if t == nil {
		t = &thread{e: e, id: id}
		t.next, t.stop = iter.Pull(t.serve)
		t.next()
		e.threads[id] = t
	}
	e.live++
	t.name, t.fn = name, f
	t.begun, t.status, t.skip, t.yielded, t.free, t.after, t.nosched, t.going = false, ready, true, false, false, nil, 0, notParking
	t.hash = mix(origin, past)
	t.reads.clear()
	t.buf, t.seen = t.buf[:0], t.seen[:0]
	t.drains = 0
	t.pins, t.rand, t.serial, t.joined = 0, 0, 0, false
	t.stamp++
	t.limited, t.late, t.guard = false, false, nil
	t.p = t.id % len(e.procs)
	t.op, t.on, t.why = opStart, nil, ""
	return t
}

// ended returns the slot of a thread that has ended.
func (e *engine) ended() int {
	for i, t := range e.threads {
		if t.status == done {
			return i
		}
	}
	panic(fmt.Sprintf("sim: more than %d threads at a time", maxThreads))
}

// vacate prepares the slot of a thread that has ended for another: what it left in its store buffer drains, as it might
// have before, and no fence waits for it.
func (e *engine) vacate(t *thread) {
	t.drainAll()
	for _, f := range e.threads[:e.n] {
		f.goals[t.id] = 0
	}
}

// serve is the coroutine: each time it is resumed with a new function it runs it.
func (t *thread) serve(yield func(struct{}) bool) {
	t.yield = yield
	for yield(struct{}{}) {
		t.run()
		t.finish()
	}
}

// run calls the thread's function and survives whatever it does.
func (t *thread) run() {
	survived := false
	defer func() {
		if !survived { // runtime.Goexit: the coroutine cannot go on, but others can; suspended here until it is dismissed
			t.dead = true
			t.finish()
			t.yield(struct{}{})
		}
	}()
	t.begun = true
	t.call()
	survived = true
}

// call returns unless the function calls runtime.Goexit, also if the schedule ends while it does.
func (t *thread) call() {
	defer func() {
		t.nosched = 0
		v := recover()
		if _, aborted := v.(errAborted); !aborted && v != nil {
			t.e.panicked(v)
		}
	}()
	t.fn()
}

func (e *engine) panicked(v any) {
	if e.over {
		return
	}
	msg := fmt.Sprint(v)
	if e.tracing {
		msg += "\n" + string(debug.Stack())
	}
	e.failWith(KindPanic, msg)
}

// finish marks the thread as ended and hands over.
func (t *thread) finish() {
	e := t.e
	if t.pins != 0 && !e.over {
		e.failWith(KindMisuse, fmt.Sprintf("%s ended while pinned", t.name))
	}
	t.status = done
	t.begun = false
	e.live--
	if !e.over {
		e.next = e.schedule()
	}
}

// resume switches to the coroutine until it gives way.
func (t *thread) resume() { t.next() }

// giveWay lets n run; the thread goes on when somebody chooses it.
func (t *thread) giveWay(n *thread) {
	e := t.e
	if n != t {
		e.next = n
		if !t.yield(struct{}{}) || e.over {
			e.over = true
			panic(errAborted{})
		}
	}
}

// point is the scheduling point before an operation.
func (t *thread) point(op opcode, w *word) {
	if t.cost != nil {
		t.cost.step()
		return
	}
	e := t.e
	if e.over {
		panic(errAborted{})
	}
	t.op, t.on = op, w
	switch {
	case t.nosched > 0:
		if t.barred() {
			t.fail(KindMisuse, t.name+" would block inside Atomically")
		}
	case t.skip && !t.barred():
	case t.joined && !t.barred():
		t.count()
	default:
		t.joined = false
		t.giveWay(e.schedule())
	}
	t.skip, t.joined = false, false
	if !op.reads() {
		t.stamp++
	}
	t.advance(op)
}

// guardedPoint is a scheduling point before an operation that can take effect only while w is not v. Until then the thread
// cannot run: it is as if it waited, without steps that find out that it has to.
func (t *thread) guardedPoint(op opcode, w *word, v value) {
	t.guard, t.bar, t.where = w, v, t.e.steps
	t.point(op, w)
	t.guard = nil
}

// barred reports whether the thread's guard forbids it to run.
func (t *thread) barred() bool {
	w := t.guard
	switch {
	case w == nil:
		return false
	case t.e.mode == AcqRel && w.width != object:
		return t.others(w, t.bar) == 0
	}
	return t.sight(w) == t.bar
}

// advance makes the point after an operation another one than the point before it.
func (t *thread) advance(op opcode) { t.hash = mix(t.hash, uint64(op)+16) }

// block suspends the thread until somebody sets its status to ready and it is chosen. Its next operation then follows
// without another scheduling point.
func (t *thread) block(s status, why string) {
	e := t.e
	if t.nosched > 0 {
		t.fail(KindMisuse, t.name+" would block inside Atomically")
	}
	t.status, t.why, t.where = s, why, e.steps
	if t.cost != nil {
		t.cost.sleep()
		return
	}
	t.giveWay(e.schedule())
	t.advance(t.op)
	t.skip = true
}

// unwind ends what the thread was doing when its schedule ended.
func (t *thread) unwind() {
	if !t.begun || t.dead {
		return
	}
	e := t.e
	e.cur = t
	t.resume()
	e.cur = nil
}

// dismiss ends the coroutine. One that ended by Goexit would take its stopper along, hence the goroutine.
func (t *thread) dismiss() {
	end := make(chan struct{})
	go func() {
		defer close(end)
		t.stop()
	}()
	<-end
}

// fail ends the schedule as failed.
func (t *thread) fail(k Kind, msg string) {
	if t.cost != nil {
		panic("sim: " + msg)
	}
	t.e.failWith(k, msg)
	panic(errAborted{})
}
