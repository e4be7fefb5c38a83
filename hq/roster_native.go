//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

// Mode HQ: rosters and cohorts.
//
// A waiter of a lock in mode HQ queues in the cohort of its locality domain. The
// leader of a cohort puts a node for the whole cohort into the lock's queue,
// whose tail is in the lock's roster. When that node is head the leader is; it
// takes the word and makes the next waiter of its cohort head in its place, with
// the same node, until the pass budget is spent; the cohort's next leader then
// puts another node at the end of the lock's queue. So the cohorts are served in
// the order in which they came, and the lock's line changes domains once per
// turn.
//
// # Rosters
//
//	R1  supply -> the inflating head       CAS of the supply's bitmap
//	R2  -> the lock                        T14. The tail has been copied; the chain of waiters stays as it is
//	R3  -> supply                          after T16
//
// # A cohort's tail: sequence number and last waiter, in one word
//
//	C1  (s, t) -> (s, me)   CAS   enqueue, after a second look at the lock's word
//	C2  (s, me) -> (s, 0)   CAS   the leader goes, nobody behind it
//	C3  (s, 0) -> (s+1, 0)  CAS   deflate
//
// # Invariants
//
//	R4  a cohort that is not empty, and a lock's queue that is not empty, keep
//	    the roster with its lock: deflate looks at all of them after T15.
//	R5  a roster that is the lock's at the second look of C1 is still the lock's
//	    if C1 succeeds: C3 would have changed the sequence number.
//	R6  a lock with q only set and in mode HQ has a queue, or a deflate under way.
//	R7  the lock's queue holds one node for each cohort with a leader that has
//	    registered it, and those of waiters of mode Q before them. Abandoned and
//	    skipped nodes may be among them.
//	R8  passes and since of a cohort belong to its leader.
//	R9  two locks never have the same roster.
//	R10 a hand-over counts as a crossing once the head of another domain has its
//	    turn: while all waiters are of one domain, every draining of the queue is
//	    a vote for mode Q.

package hq

import "math/bits"

// A roster is what a lock has in mode HQ.
type roster struct {
	tail  atomicUint32 // of the lock's queue
	votes atomicUint32 // times in a row that the queue became empty with few crossings since it was empty before
	_     [120]byte
}

// A cohort is the waiters of one domain at one lock. It takes two cache lines,
// which amd64 fetches as a pair.
type cohort struct {
	tail   atomicUint64
	since  int64  // when its turn began
	passes uint32 // hand-overs inside it in this turn
	_      [108]byte
}

// Rosters are numbered from 1. The cohorts of one domain are next to each other:
// a page of them is first touched by a CPU of that domain, hence in its memory.
var (
	rosters [maxRosters + 1]roster
	cohorts [maxDomains][maxRosters + 1]cohort
	supply  [(maxRosters + 63) / 64]atomicUint64 // a bit for each roster that is in use
	inUse   atomicUint32
	mostUse atomicUint32
)

func rosterOf(word uint32) *roster { return &rosters[word>>refShift] }

// takeRoster returns the number of a roster that was in nobody's use (R1), or 0.
//
//go:norace
func takeRoster() uint32 {
	for i := range supply {
		for {
			used := supply[i].Load()
			k := bits.TrailingZeros64(^used)
			number := uint32(i*64 + k + 1)
			if k == 64 || number > rosterLimit() {
				break
			}
			if supply[i].CompareAndSwap(used, used|1<<k) {
				noteUse(inUse.Add(1))
				return number
			}
		}
	}
	if mutant("hq: the last roster is shared") {
		return 1
	}
	return 0
}

//go:norace
func noteUse(n uint32) {
	for most := mostUse.Load(); n > most && !mostUse.CompareAndSwap(most, n); {
		most = mostUse.Load()
	}
}

// giveRoster undoes takeRoster (R3).
//
//go:norace
func giveRoster(number uint32) {
	inUse.Add(^uint32(0))
	supply[(number-1)/64].And(^(uint64(1) << ((number - 1) % 64)))
}

// scarce reports whether locks that do not need their roster should give it back.
//
//go:norace
func scarce() bool { return inUse.Load() > rosterLimit()/2 }

// inflate takes the lock from mode Q to HQ. Its caller is the head, so that
// nobody else can, and the queue is not empty.
//
//go:norace
func (l *Lock) inflate() {
	if l.word.Load()&(modeMask|qOnly) != modeQ {
		return
	}
	number := takeRoster()
	if number == 0 {
		switches.exhausted.Add(1)
		return
	}
	r := &rosters[number]
	r.votes.Store(0)
	for {
		s := l.word.Load()
		if s&(modeMask|qOnly|pending) != modeQ {
			r.tail.Store(0)
			giveRoster(number)
			return
		}
		if !mutant("hq: inflation forgets the queue") {
			r.tail.Store(s >> refShift)
		}
		if l.word.CompareAndSwap(s, s&^refMask|modeHQ|number<<refShift) { // T14, R2
			switches.inflations.Add(1)
			return
		}
	}
}

// deflate takes the lock from mode HQ with this roster to Q if nobody is queued.
//
//go:norace
func (l *Lock) deflate(number uint32) {
	for l.swapMode(number, modeHQ, modeClosing) { // T15
		if l.close(number) {
			early := mutant("hq: roster back before the lock has left it")
			if early {
				giveRoster(number)
			}
			l.swapMode(number, modeClosing, modeQ) // T16
			if !early {
				giveRoster(number)
			}
			switches.deflations.Add(1)
			return
		}
		l.swapMode(number, modeClosing, modeHQ) // T17
		// Who drained the queue since then has taken no notice, or will do the rest.
		if l.word.Load()&qOnly == 0 || !quiet(number) || mutant("hq: no look after CLOSING") {
			return
		}
	}
}

// swapMode changes the mode of a lock that is in mode from with this roster.
//
//go:norace
func (l *Lock) swapMode(number, from, to uint32) bool {
	for {
		s := l.word.Load()
		if s&(modeMask|refMask) != from|number<<refShift {
			return false
		}
		n := s&^modeMask | to
		if to == modeQ {
			n &^= refMask
		}
		if l.word.CompareAndSwap(s, n) {
			return true
		}
	}
}

// close sees to it that nobody queues in the cohorts of a roster any more, and
// reports whether nobody has.
//
//go:norace
func (l *Lock) close(number uint32) bool {
	for d := range domains() {
		if !cohorts[d][number].close() {
			return false
		}
	}
	return mutant("hq: the lock's queue may be left") || rosters[number].tail.Load() == 0
}

// quiet reports whether nobody was queued while it looked.
//
//go:norace
func quiet(number uint32) bool {
	for d := range domains() {
		if uint32(cohorts[d][number].tail.Load()) != 0 {
			return false
		}
	}
	return rosters[number].tail.Load() == 0
}

//go:norace
func (c *cohort) close() bool {
	for {
		t := c.tail.Load()
		if uint32(t) != 0 {
			return mutant("hq: a cohort may be left")
		}
		if mutant("hq: no new sequence number") || c.tail.CompareAndSwap(t, t+1<<32) { // C3
			return true
		}
	}
}

// empty empties the queue if ref is its tail (C2).
//
//go:norace
func (c *cohort) empty(ref uint32) bool {
	for {
		t := c.tail.Load()
		if uint32(t) != ref {
			return false
		}
		if c.tail.CompareAndSwap(t, t&^(1<<32-1)) {
			return true
		}
	}
}

// join enqueues the caller in its cohort, given that the lock's word was s.
//
//go:norace
func (w *wait) join(s uint32) bool {
	c := &cohorts[w.domain][s>>refShift]
	t := c.tail.Load()
	if (w.lock.word.Load()^s)&(modeMask|refMask) != 0 && !mutant("hq: no second look at the word") {
		return false
	}
	if !c.tail.CompareAndSwap(t, t&^(1<<32-1)|uint64(w.node)) { // C1, R5
		return false
	}
	w.cohort, w.roster = c, rosterOf(s)
	follow(uint32(t), w.node)
	return true
}

// lead waits, as the leader of the cohort, until its node is head of the lock's
// queue.
//
//go:norace
func (w *wait) lead() (end int) {
	w.up = node(w.node).baton.up
	for {
		if w.up == 0 && !w.register() {
			if !mutant("hq: nodeless leader stays") {
				w.handDown(0)
			}
			return nodeless
		}
		switch w.await(w.up) {
		case turn:
			w.beginTurn()
			return turn
		case tooLate:
			w.tally.abandons++
			if mutant("hq: leader keeps the cohort's place") {
				w.handDown(0)
			} else if !w.handDown(w.up) && !mutant("hq: empty cohort keeps its place") {
				w.giveUp()
			}
			return tooLate
		}
		w.up = 0
	}
}

// register puts a node for the cohort at the end of the lock's queue.
//
//go:norace
func (w *wait) register() bool {
	w.up = claim(w.now)
	if w.up == 0 {
		return false
	}
	w.cohort.passes = 0
	follow(w.roster.tail.Swap(w.up), w.up)
	return true
}

// beginTurn notes a hand-over that gave the cohort its turn; one inside it is noted
// by handOver.
//
//go:norace
func (w *wait) beginTurn() {
	if c := w.cohort; c.passes == 0 {
		c.since = w.now
		w.sight(&node(w.up).baton.sighting)
	}
}

// handDown makes the next waiter of the cohort its leader, with the node up in
// the lock's queue or none. It reports false if there was nobody: then up is
// still the caller's.
//
//go:norace
func (w *wait) handDown(up uint32) bool { return w.pass(w.cohort, w.node, baton{up: up}) }

// giveUp takes the node of an empty cohort out of the lock's queue.
//
//go:norace
func (w *wait) giveUp() {
	n := node(w.up)
	for {
		switch n.state.Load() {
		case waiting:
			if n.state.CompareAndSwap(waiting, abandoned) { // N3
				return
			}
		case head:
			if !mutant("hq: head of an empty cohort just goes") {
				w.passUp(0)
			}
			return
		default:
			drop(w.up)
			return
		}
	}
}

// handOver makes another waiter the head after the caller, a leader, has taken
// the lock: of the same cohort if there is one and the pass budget allows it.
//
//go:norace
func (w *wait) handOver() {
	c := w.cohort
	passes := c.passes
	spent := passes >= w.tuned.local || w.now-c.since > w.tuned.localTime
	if spent && w.roster.tail.Load() != w.up && !mutant("hq: no pass budget") { // another cohort waits
		if mutant("hq: a spent turn goes down and up") {
			w.handDown(w.up)
		} else {
			w.handDown(0)
		}
		w.passUp(passes)
		return
	}
	if spent && !mutant("hq: no pass budget") {
		c.passes, c.since = 0, w.now
	}
	c.passes++
	if w.handDown(w.up) {
		w.tally.local++
		return
	}
	w.passUp(passes)
}

// passUp makes the next in the lock's queue the head, if there is one, after so
// many hand-overs inside the caller's cohort.
//
//go:norace
func (w *wait) passUp(passes uint32) {
	seen := node(w.up).baton.sighting
	seen.streak = min(seen.streak+passes, manyHandOvers)
	if seen.streak >= w.tuned.streak && mutant("hq: a crossing counts before it is known who is next") {
		seen.crossings++
	}
	if w.pass(nil, w.up, baton{sighting: seen}) {
		return
	}
	if s := w.lock.word.Load(); s&modeMask == modeHQ {
		w.drained(s, seen.crossings)
	}
}

// drained is called when the queue of a lock in mode HQ has become empty, after
// so many crossings.
//
//go:norace
func (w *wait) drained(s, crossings uint32) {
	r := rosterOf(s)
	if crossings >= w.tuned.keep {
		r.votes.Store(0)
	} else {
		r.votes.Add(1)
	}
	if s&qOnly != 0 && !mutant("hq: drained lock stays forbidden") || scarce() || r.votes.Load() >= w.tuned.votes {
		w.lock.deflate(s >> refShift)
	}
}
