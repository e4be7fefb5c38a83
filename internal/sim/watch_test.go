//go:build sim

package sim_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

type pair struct{ plain, atomic sim.Uint32 }

//go:noinline
func (p *pair) storePlainly() { sim.StorePlain32(&p.plain, 1) }

//go:noinline
func (p *pair) addAtomically() { p.atomic.Add(1) }

// A store is its function's also if it leaves the store buffer while others run.
func TestWatch_KnowsWhoWrites(t *testing.T) {
	var p *pair
	by := map[string]map[string]bool{"plain": {}, "atomic": {}}
	r := sim.Explore(sim.Program{
		Setup: func() {
			p = new(pair)
			sim.Name(&p.plain, "plain")
			sim.Name(&p.atomic, "atomic")
		},
		Threads: []func(){func() { p.storePlainly(); sim.Step("buffered") }, func() { p.addAtomically() }},
		AskBy:   true,
		Watch: func(w sim.Write) error {
			by[w.Object][w.By()[0]] = true
			return nil
		},
	}, sim.Options{Memory: sim.TSO})
	if !r.Exhausted {
		t.Errorf("%s", r)
	}
	for word, want := range map[string]string{"plain": ".(*pair).storePlainly", "atomic": ".(*pair).addAtomically"} {
		got := slices.Collect(maps.Keys(by[word]))
		if len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%s is written by %q, want %s", word, got, want)
		}
	}
}
