//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

// A wait is one stay of a pinned goroutine in the queues.
type wait struct {
	lock  *Lock
	tuned *tuning

	node   uint32  // the caller's own; 0 once it has left its cohort
	up     uint32  // the node in the lock's queue that makes the caller head; 0 = none yet
	cohort *cohort // whose queue node is in; nil: it is in the lock's, and the same as up
	roster *roster // of cohort

	domain  uint32
	starved bool
	tally   *tally
	watch
}

// A watch times a pinned wait.
type watch struct {
	began, now, deadline int64
	stolen               int64 // time in which the thread was off its CPU: in gaps above stolenGap
	away                 int64 // that, and time in gaps above ownGap: see Stats
}

// start begins a wait of at most budget.
//
//go:norace
func start(budget int64) watch {
	now := nanotime()
	return watch{began: now, now: now, deadline: now + budget}
}

// late looks at the clock and reports whether the budget is spent.
//
//go:norace
func (w *watch) late() bool {
	now := nanotime()
	if gap := now - w.now; gap > ownGap {
		w.away += gap
		if gap > stolenGap {
			w.stolen += gap
		}
	}
	w.now = now
	return now > w.deadline
}

// stop notes for how long the caller has kept its P, as far as it has looked.
//
//go:norace
func (w *watch) stop(t *tally) {
	t.pinned = max(t.pinned, w.now-w.began-w.stolen)
	t.spun = max(t.spun, w.now-w.began-w.away)
}

// enqueue puts the node into the queue that the lock's mode asks for. It reports
// false in mode CLOSING, where there is none.
//
//go:norace
func (w *wait) enqueue() bool {
	for {
		s := w.lock.word.Load()
		switch mode := s & modeMask; {
		case mode == modeQ:
			if w.lock.word.CompareAndSwap(s, s&^refMask|w.node<<refShift) { // T6
				w.up = w.node
				follow(s>>refShift, w.node)
				return true
			}
		case mode == modeHQ || mutant("hq: newcomers queue while closing"):
			if w.join(s) {
				return true
			}
		default:
			return false
		}
	}
}

// The ends of await and of lead.
const (
	turn     = iota // the node is head
	tooLate         // the budget is spent; the node is as it was if it is that of a cohort, else abandoned
	passedBy        // the node was skipped and is no longer the caller's
	nodeless        // there was no node for the cohort, which the caller has left
)

// await waits until the node ref, which is the caller's own or that of its
// cohort, is head.
//
//go:norace
func (w *wait) await(ref uint32) (end int) {
	n := node(ref)
	for i := 1; ; i++ {
		switch n.state.Load() {
		case head:
			return turn
		case skipped, out:
			drop(ref)
			return passedBy
		}
		pause(1)
		if i%clockEvery != 0 {
			continue
		}
		late := w.late()
		n.beat.Store(beatOf(w.now))
		if !late {
			continue
		}
		if ref != w.node {
			return tooLate
		}
		if n.state.CompareAndSwap(waiting, abandoned) || mutant("hq: a head abandons") { // N3
			w.tally.abandons++
			return tooLate
		}
	}
}

// compete takes the word as the head of the lock's queue.
//
//go:norace
func (w *wait) compete() bool {
	l := w.lock
	if w.cohort == nil && w.detect() {
		l.inflate()
	}
	if w.starved {
		l.word.Or(nosteal) // T10
	}
	impatientAt := w.now + w.tuned.patience
	for i, losses := 1, 0; ; i++ {
		s := l.word.Load()
		if s&locked == 0 {
			if w.take(s) {
				return true
			}
			losses++
			w.tally.steals++
			continue
		}
		pause(1)
		if i%clockEvery != 0 && losses < maxLosses {
			continue
		}
		if w.late() {
			w.leave()
			return false
		}
		w.starved = w.starved || w.now > impatientAt || losses >= maxLosses
		if w.starved && s&nosteal == 0 {
			l.word.Or(nosteal) // T10
		}
		losses = 0
	}
}

// take takes the free word, whose contents were s, and makes another waiter the
// head.
//
//go:norace
func (w *wait) take(s uint32) bool {
	l := w.lock
	last := s>>refShift == w.up || mutant("hq: nobody is behind the head")
	if last && (s&modeMask == modeQ || mutant("hq: roster taken for a tail")) {
		if !l.word.CompareAndSwap(s, s&^(refMask|nosteal)|locked) { // T7, T11
			return false
		}
		node(w.up).state.Store(free) // N4
		return true
	}
	if !l.word.CompareAndSwap(s, s&^nosteal|locked) { // T8, T11
		return false
	}
	if w.cohort == nil {
		w.passUp(0)
	} else {
		w.handOver()
	}
	return true
}

// leave ends the wait of the head without the lock.
//
//go:norace
func (w *wait) leave() {
	w.tally.abandons++
	w.lock.word.And(^uint32(nosteal)) // T11
	passes := uint32(0)
	if w.cohort != nil {
		passes = w.cohort.passes
		if w.handDown(w.up) {
			return
		}
	}
	w.passUp(passes)
}
