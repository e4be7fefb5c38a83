//go:build sim

package parking

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/hqsync/hqsync/internal/sim"
)

// tracked follows the states of waiters (W1 to W4), buckets (B3) and groups (V1
// to V4) through every program, and objects to what their headers do not list.
var tracked = newTracker()

type tracker struct {
	*sim.Transitions
	waiters []trackedWaiter
	buckets []trackedBucket // whose mark is not live
}

type trackedWaiter struct {
	w   *waiter
	b   *bucket // where it is queued; nil: not queued any more
	key Key
}

type trackedBucket struct {
	b    *bucket
	mark uint32
}

func newTracker() *tracker {
	t := &tracker{Transitions: sim.NewTransitions("W1", "W2", "W3 key", "W3 bucket", "W4", "B3 migrating", "B3 moved",
		"V1", "V2", "V3", "V4")}
	simFreed = t.freed
	return t
}

// begin begins a schedule.
func (t *tracker) begin() { t.waiters, t.buckets = t.waiters[:0], t.buckets[:0] }

// look sees a bucket, after each step.
func (t *tracker) look(b *bucket) error {
	mark := b.mark.Load()
	if mark == live && b.head == nil {
		return nil
	}
	return errors.Join(t.marked(b, mark), t.queues(b, b.head))
}

func (t *tracker) marked(b *bucket, mark uint32) error {
	if mark == live {
		return nil
	}
	for i := range t.buckets {
		if o := &t.buckets[i]; o.b == b {
			if mark == o.mark {
				return nil
			}
			o.mark = mark
			return t.take(mark == moved, "B3 moved", "a mark went back")
		}
	}
	t.buckets = append(t.buckets, trackedBucket{b, mark})
	return t.take(mark == migrating, "B3 migrating", "a bucket has moved without migrating")
}

// take counts a transition that is one.
func (t *tracker) take(ok bool, name, otherwise string) error {
	if !ok {
		return errors.New(otherwise)
	}
	return t.Took(name)
}

// queues sees the queues below q.
func (t *tracker) queues(b *bucket, q *waiter) (err error) {
	if q == nil {
		return nil
	}
	for w := q; w != nil; w = w.next {
		if e := t.queued(b, w); e != nil {
			err = e
		}
	}
	return errors.Join(err, t.queues(b, q.child[0]), t.queues(b, q.child[1]))
}

func (t *tracker) queued(b *bucket, w *waiter) error {
	key := Key{w.addr.Load(), w.node.Load()}
	for i := range t.waiters {
		o := &t.waiters[i]
		if o.w != w {
			continue
		}
		before := *o
		o.b, o.key = b, key
		switch {
		case before.b == nil:
			return errors.New("a record that came back is in a queue")
		case before.key != key:
			return t.Took("W3 key")
		case before.b != b:
			return t.Took("W3 bucket")
		}
		return nil
	}
	t.waiters = append(t.waiters, trackedWaiter{w: w, b: b, key: key})
	return t.Took("W1")
}

// freed sees a record that comes back, after its wait or without one.
func (t *tracker) freed(w *waiter) {
	sim.Assert(!w.queued, "a record comes back while it is queued")
	for i := range t.waiters {
		if o := &t.waiters[i]; o.w == w {
			o.b = nil
			sim.Assert(errors.Join(t.Took("W2"), t.Took("W4")) == nil, "unlisted")
		}
	}
}

// watch sees the words of groups.
func (t *tracker) watch(w sim.Write) error {
	if w.Object != "group" || w.Offset != unsafe.Offsetof(group{}.signals) || w.Old == w.New {
		return nil
	}
	switch old, now := int32(w.Old), int32(w.New); {
	case old == 0 && now == 1:
		return t.Took("V1")
	case old == -1 && now == 0:
		return t.Took("V4")
	case now == old+1:
		return t.Took("V2")
	case now < old && old >= 1:
		return t.Took("V3")
	}
	return errors.New("a group's count took a step that is not listed")
}

// Every transition is taken in some schedule of some program.
func TestModelTable_TakesEveryTransition(t *testing.T) {
	tracked = newTracker()
	for _, p := range append(twoThreads(), moreThreads()...) {
		if r := sim.Explore(p, sim.Options{Memory: sim.TSO, Strategy: sim.Exhaustive(1), Budget: 2000}); r.Failure != nil {
			t.Errorf("%s\n%s", r, r.Failure.Detail())
		}
	}
	t.Log(tracked)
	for _, name := range tracked.Untaken() {
		t.Errorf("no program takes %s", name)
	}
}
