//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

// A sighting is what the heads of a lock's queue have seen of each other since
// the queue was empty. It goes from head to head, so it costs no line of its own.
//
// Whoever has become head notes the hand-over, not who made it: that one knows
// neither whether anybody is behind it nor of which domain. So waiters of a single
// domain make no crossing (invariant R10).
type sighting struct {
	domain    uint32 // of the last head, plus 1; 0 = there was none
	streak    uint32 // hand-overs since the last one to another domain
	handOvers uint32
	crossings uint32 // hand-overs to another domain after a streak
}

// manyHandOvers bounds counters, far above the thresholds that are allowed.
const manyHandOvers = 1 << 24

// detect notes the hand-over that made the caller, a waiter of mode Q, head, and
// reports whether it is time for mode HQ: the queue has been there for a while, and
// waiters of the same domain come one after the other often enough for cohorts to
// form.
//
//go:norace
func (w *wait) detect() bool {
	b := &node(w.up).baton.sighting
	w.sight(b)
	if int64(b.handOvers) <= w.tuned.handOvers || int64(b.crossings) <= w.tuned.crossings {
		return false
	}
	b.handOvers, b.crossings = 0, 0 // if it fails, not again at the next hand-over
	return true
}

// sight notes the hand-over that made the caller head of the lock's queue.
//
//go:norace
func (w *wait) sight(b *sighting) {
	mine := w.domain + 1
	switch {
	case b.domain == 0:
	case b.domain == mine:
		w.tally.local++
		b.handOvers = min(b.handOvers+1, manyHandOvers)
		b.streak = min(b.streak+1, manyHandOvers)
	default:
		w.tally.remote++
		b.handOvers = min(b.handOvers+1, manyHandOvers)
		if b.streak >= w.tuned.streak {
			b.crossings = min(b.crossings+1, manyHandOvers)
		}
		b.streak = 0
	}
	b.domain = mine
}
