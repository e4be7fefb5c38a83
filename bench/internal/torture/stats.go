package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Report says what a run came to.
type Report struct {
	Locks   string
	Seed    uint64
	Took    time.Duration
	Kinds   []Kind
	Struck  map[string]int // disturbances, and rests
	Course  []Moment
	Members int
}

// A Kind sums up the members of one kind. Their luck is alike, so their shares should be.
type Kind struct {
	Name            string
	Members         int
	Total, Max, Min uint64 // acquisitions; items or tasks for cond and waitgroup
	GaveUp          uint64 // tries and waits that ended without
}

// Uneven is locktorture's suspicion: the luckiest has more than twice what the unluckiest has.
func (k Kind) Uneven() bool { return k.Max/2 > k.Min }

func (k Kind) String() string {
	mark := ""
	if k.Uneven() {
		mark = " ???"
	}
	return fmt.Sprintf("%s %d (%d/%d%s)", k.Name, k.Total, k.Max, k.Min, mark)
}

// A Moment is what had been acquired by kind after a time.
type Moment struct {
	After time.Duration
	Total map[string]uint64
}

// tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[name]++
}

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.n)
}

// kinds sums up the members, in the order in which the kinds were enlisted.
func (s *session) kinds() []Kind {
	var kinds []Kind
	at := map[string]int{}
	for _, m := range s.members {
		i, known := at[m.kind]
		if !known {
			i = len(kinds)
			at[m.kind] = i
			kinds = append(kinds, Kind{Name: m.kind, Min: ^uint64(0)})
		}
		k, n := &kinds[i], m.acquired.Load()
		k.Members++
		k.Total += n
		k.Max, k.Min = max(k.Max, n), min(k.Min, n)
		k.GaveUp += m.gaveUp.Load()
	}
	return kinds
}

// printStats prints a line of totals, each with the most and the least that a member has.
func (s *session) printStats(after time.Duration) {
	moment := Moment{After: after, Total: map[string]uint64{}}
	var texts []string
	for _, k := range s.kinds() {
		moment.Total[k.Name] = k.Total
		texts = append(texts, k.String())
	}
	s.course = append(s.course, moment)
	fmt.Fprintf(s.Log, "torture: %4.0f s  %s  disturbed: %s\n", after.Seconds(), strings.Join(texts, ", "), counted(s.struck.all()))
}

// counted lists counts by name.
func counted(n map[string]int) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, n[name]))
	}
	return strings.Join(texts, ", ")
}

func (s *session) report(took time.Duration) Report {
	s.printStats(took)
	return Report{Locks: s.Locks, Seed: s.Seed, Took: took, Kinds: s.kinds(), Struck: s.struck.all(), Course: s.course, Members: len(s.members)}
}

// Disturbed lists how often each disturbance struck.
func (r Report) Disturbed() string { return counted(r.Struck) }
