//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hqsync/hqsync/topology"
)

// onMachine makes Locks see a machine of so many domains until the end of the
// test. Ps take turns in running in them.
func onMachine(t *testing.T, domains int) {
	t.Helper()
	m, err := topology.Synthetic(topology.Shape{Packages: domains, CoresPerLLC: 4})
	if err != nil {
		t.Fatal(err)
	}
	before := located.Load()
	located.Store(m)
	t.Cleanup(func() { located.Store(before) })
	if got := realDomains(); got != domains {
		t.Fatalf("%d domains, want %d", got, domains)
	}
}

// tune changes the tunables until the end of the test.
func tune(t *testing.T, change func(*Tunables)) {
	t.Helper()
	before := CurrentTunables()
	after := before
	change(&after)
	if err := SetTunables(after); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := SetTunables(before); err != nil {
			t.Error(err)
		}
	})
}

func withProcs(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// Whatever the modes and their changes, sections exclude each other and every
// node and roster comes back.
func TestModesUnderStress(t *testing.T) {
	d := 300 * time.Millisecond
	if testing.Short() {
		d = 50 * time.Millisecond
	}
	for _, domains := range []int{2, 3, 8} {
		for name, change := range map[string]func(*Tunables){
			"sticky":     func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak, u.Local = 0, 0, 0, 2 },
			"changeable": func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak, u.Local, u.Keep, u.Votes = 0, 0, 0, 2, 1e6, 1 },
			"hurried": func(u *Tunables) {
				u.HandOvers, u.Crossings, u.Streak, u.Keep, u.Budget = 0, 0, 0, 1e6, time.Microsecond
			},
		} {
			t.Run(fmt.Sprintf("domains=%d/%s", domains, name), func(t *testing.T) {
				onMachine(t, domains)
				tune(t, change)
				withProcs(t, 8)
				before := ReadStats()
				l := new(Lock)
				for range 3 {
					stress(t, 32, d/3, l, func() { pause(20) })
				}
				t.Logf("%+v", ReadStats())
				checkQuiet(t, l)
				l.SetHQ(false)
				checkWord(t, "SetHQ", l, qOnly|l.word.Load()&parked)
				if s := ReadStats(); s.InHQ != 0 || s.Inflations-before.Inflations != s.Deflations-before.Deflations {
					t.Errorf("after the lock has left mode HQ: %+v, before: %+v", s, before)
				}
			})
		}
	}
}

// queued returns a wait that has queued, as the leader of its cohort if it is
// that, with the cohort's node in the lock's queue.
func queued(t *testing.T, l *Lock, domain uint32) *wait {
	t.Helper()
	w := waitOf(t, l, domain)
	if !w.enqueue() {
		t.Fatal("the lock is closing")
	}
	if w.cohort != nil && node(w.node).state.Load() == head {
		w.up = node(w.node).baton.up
		if w.up == 0 && !w.register() {
			t.Fatal("no node left for the cohort")
		}
	}
	return w
}

// takes lets w, which must be head, take the free lock.
func takes(t *testing.T, what string, w *wait) {
	t.Helper()
	if w.cohort != nil && w.up == 0 {
		w.up = node(w.node).baton.up
	}
	checkState(t, what+": its node in the lock's queue", w.up, head)
	if w.cohort != nil {
		w.beginTurn()
	}
	if !w.take(w.lock.word.Load()) {
		t.Fatalf("%s: did not take the free lock", what)
	}
}

func TestTransitionsOfModeHQ(t *testing.T) {
	onMachine(t, 2)
	tune(t, func(u *Tunables) { u.Local, u.LocalTime = 1, time.Second })
	pin()
	defer unpin()
	before := ReadStats()
	l := new(Lock)
	l.LockPinned()

	// The queue of mode Q goes on in mode HQ, before all cohorts.
	a, b := queued(t, l, 0), queued(t, l, 1)
	l.inflate()
	number := l.word.Load() >> refShift
	checkWord(t, "T14", l, locked|modeHQ|number<<refShift)
	if tail := rosters[number].tail.Load(); tail != b.node {
		t.Errorf("T14: the roster's tail is %d, want %d", tail, b.node)
	}
	c, d, e, f := queued(t, l, 0), queued(t, l, 0), queued(t, l, 1), queued(t, l, 0)
	cUp, eUp := c.up, e.up
	if tail := rosters[number].tail.Load(); tail != eUp {
		t.Errorf("R7: the roster's tail is %d, want that of the second cohort, %d", tail, eUp)
	}
	checkState(t, "C1: leader", c.node, head)
	checkState(t, "C1: second of the cohort", d.node, waiting)

	l.UnlockPinned()
	takes(t, "first of mode Q", a)
	l.UnlockPinned()
	takes(t, "second of mode Q", b)
	l.UnlockPinned()

	// One hand-over inside the first cohort, then the other's turn.
	takes(t, "first leader", c)
	checkState(t, "hand-over inside the cohort", d.node, head)
	if up := node(d.node).baton.up; up != cUp {
		t.Errorf("the cohort's node is %d, want %d", up, cUp)
	}
	l.UnlockPinned()
	takes(t, "second of the first cohort", d)
	checkState(t, "budget spent: leader without a turn", f.node, head)
	if up := node(f.node).baton.up; up != 0 {
		t.Errorf("budget spent: the next leader has node %d in the lock's queue", up)
	}
	checkState(t, "budget spent: the other cohort's node", eUp, head)
	if !f.register() {
		t.Fatal("no node left for the cohort")
	}
	l.UnlockPinned()
	takes(t, "second leader", e)
	l.UnlockPinned()
	takes(t, "third leader", f)
	checkWord(t, "drained", l, locked|modeHQ|number<<refShift)
	if !quiet(number) {
		t.Error("a queue is not empty")
	}

	// Newcomers of a closing lock do not queue; closing changes sequence numbers.
	seq := cohorts[0][number].tail.Load()
	g := waitOf(t, l, 0)
	l.swapMode(number, modeHQ, modeClosing)
	checkWord(t, "T15", l, locked|modeClosing|number<<refShift)
	if g.enqueue() {
		t.Error("queued while closing")
	}
	l.swapMode(number, modeClosing, modeHQ)
	checkWord(t, "T17", l, locked|modeHQ|number<<refShift)
	g.enqueue()
	l.deflate(number)
	checkWord(t, "T17, somebody queues", l, locked|modeHQ|number<<refShift)
	if g.lead() != turn {
		t.Error("a lone leader is not head")
	}
	g.leave()
	l.deflate(number)
	checkWord(t, "T16", l, locked)
	if now := cohorts[0][number].tail.Load(); now <= seq {
		t.Errorf("C3: the tail is %#x, was %#x", now, seq)
	}
	l.UnlockPinned()
	checkWord(t, "at rest", l, 0)
	checkQuiet(t, l)
	s := ReadStats()
	if s.Inflations-before.Inflations != 1 || s.Deflations-before.Deflations != 1 || s.InHQ != before.InHQ ||
		s.LocalHandOvers-before.LocalHandOvers != 1 || s.RemoteHandOvers-before.RemoteHandOvers != 2 {
		t.Errorf("%+v, before: %+v", s, before)
	}
}

// drain lets a cohort of so many waiters, behind an owner of domain 0, take the lock
// one after the other.
func drain(t *testing.T, l *Lock, domains ...uint32) {
	t.Helper()
	l.LockPinned()
	var waits []*wait
	for _, d := range domains {
		waits = append(waits, queued(t, l, d))
	}
	for i, w := range waits {
		l.UnlockPinned()
		if w.cohort.passes == 0 && w.up == 0 && node(w.node).baton.up == 0 && !w.register() {
			t.Fatal("no node left for the cohort")
		}
		takes(t, fmt.Sprint("waiter ", i), w)
	}
	l.UnlockPinned()
}

// Only a hand-over to another domain speaks for mode HQ: waiters of one node, of
// which many follow one another, do not keep a lock in it.
func TestOneDomain_LeavesModeHQ(t *testing.T) {
	onMachine(t, 2)
	tune(t, func(u *Tunables) { u.LocalTime = time.Second })
	pin()
	defer unpin()
	l := new(Lock)
	l.inflate()
	number := l.word.Load() >> refShift
	votes := func() int { return int(rosters[number].votes.Load()) }
	one := []uint32{0, 0, 0, 0, 0}
	for i := range defaults.Votes - 1 {
		if drain(t, l, one...); votes() != i+1 {
			t.Fatalf("drained %d times: %d votes for mode Q", i+1, votes())
		}
	}
	if drain(t, l, append(one, 1)...); votes() != 0 || !l.InHQ() {
		t.Errorf("after a crossing: %d votes for mode Q, HQ %t", votes(), l.InHQ())
	}
	for range defaults.Votes {
		drain(t, l, one...)
	}
	checkWord(t, "drained", l, 0)
	checkQuiet(t, l)
}

func TestDetector(t *testing.T) {
	onMachine(t, 2)
	pin()
	defer unpin()
	// heads lets waiters of these domains become heads one after the other, so
	// many times, and returns after how many hand-overs it is time for mode HQ.
	heads := func(times int, domains ...uint32) int {
		w := waitOf(t, new(Lock), 0)
		w.up = w.node
		defer node(w.node).state.Store(free)
		for i := range times {
			w.domain = domains[i%len(domains)]
			if w.detect() {
				return i
			}
		}
		return -1
	}
	for _, c := range []struct {
		what    string
		domains []uint32
		want    int
	}{
		{"one domain", []uint32{0}, -1},
		{"two waiters of different domains", []uint32{0, 1}, -1},
		{"two of each domain, one after the other", []uint32{0, 0, 1, 1}, -1},
		{"three of each", []uint32{0, 0, 0, 1, 1, 1}, -1},
		{"four of each", []uint32{0, 0, 0, 0, 1, 1, 1, 1}, 51},
		{"a crossing in twenty", []uint32{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 59},
	} {
		if got := heads(10_000, c.domains...); got != c.want {
			t.Errorf("%s: mode HQ after %d hand-overs, want %d", c.what, got, c.want)
		}
	}
	w := waitOf(t, new(Lock), 0)
	w.up = w.node
	b := &node(w.node).baton.sighting
	*b = sighting{domain: 1, streak: manyHandOvers, handOvers: manyHandOvers}
	if w.detect(); b.streak != manyHandOvers || b.handOvers != manyHandOvers {
		t.Errorf("counters do not saturate: %+v", *b)
	}
	node(w.node).state.Store(free)
}

func TestOneDomain_NeverLeavesModeQ(t *testing.T) {
	onMachine(t, 1)
	tune(t, func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak = 0, 0, 0 })
	withProcs(t, 4)
	before := ReadStats().Inflations
	stress(t, 16, 100*time.Millisecond, new(Lock), func() { pause(20) })
	if s := ReadStats(); s.Inflations != before {
		t.Errorf("%+v", s)
	}
}

func TestSetHQ_QOnlyStaysQOnly(t *testing.T) {
	onMachine(t, 2)
	l := new(Lock)
	l.SetHQ(false)
	pin()
	l.inflate()
	unpin()
	if l.InHQ() {
		t.Error("in mode HQ, which is forbidden")
	}
	l.SetHQ(true)
	inflateNow(t, l)
	l.SetHQ(false)
	checkWord(t, "SetHQ", l, qOnly)
}

func TestRosters_ExhaustedAndGivenBack(t *testing.T) {
	onMachine(t, 2)
	locks := make([]Lock, maxRosters+1)
	before := ReadStats()
	for i := range maxRosters {
		inflateNow(t, &locks[i])
	}
	last := &locks[maxRosters]
	pin()
	last.inflate()
	unpin()
	if s := ReadStats(); last.InHQ() || s.InHQ != maxRosters || s.MostHQ != maxRosters || s.Exhausted != before.Exhausted+1 {
		t.Errorf("one lock too many: %+v", s)
	}
	last.Lock() // correct all the same
	last.Unlock()

	// While rosters are scarce a lock gives its own back as soon as it is drained.
	pin()
	locks[0].LockPinned()
	w := queued(t, &locks[0], 0)
	locks[0].UnlockPinned()
	takes(t, "only waiter", w)
	unpin()
	if locks[0].InHQ() {
		t.Error("still in mode HQ though rosters are scarce")
	}
	pin()
	locks[0].UnlockPinned()
	unpin()
	for i := range locks {
		locks[i].SetHQ(false)
	}
	if s := ReadStats(); s.InHQ != 0 {
		t.Errorf("not all rosters came back: %+v", s)
	}
}

// Nothing is allocated in the queues, in either mode.
func TestWaitingDoesNotAllocate(t *testing.T) {
	onMachine(t, 2)
	tune(t, func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak, u.Votes = 0, 0, 0, 1 })
	for _, mode := range []string{"Q", "HQ"} {
		l := new(Lock)
		if mode == "HQ" {
			inflateNow(t, l)
		}
		if n := testing.AllocsPerRun(100, func() {
			pin()
			l.LockPinned()
			a, b := queued(t, l, 0), queued(t, l, 1)
			a.leave() // b is next
			l.UnlockPinned()
			if end := b.await(b.up); end != turn || !b.compete() {
				t.Error("the second waiter did not get the lock")
			}
			l.UnlockPinned()
			unpin()
		}); n > 2 { // the two waits of this test, which live on the stack otherwise
			t.Errorf("mode %s: %v allocations", mode, n)
		}
		l.SetHQ(false)
		checkQuiet(t, l)
	}
}

// inflateNow takes a lock that nobody uses to mode HQ.
func inflateNow(t *testing.T, l *Lock) {
	t.Helper()
	pin()
	l.inflate()
	unpin()
	if !l.InHQ() {
		t.Fatal("not in mode HQ")
	}
}
