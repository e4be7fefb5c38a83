//go:build sim && gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs for the detector in mode HQ: goroutines of one domain (R10).
var (
	oneDomain = crowd{name: "HQ, one domain", scripts: []string{"a", "a", "a"}, domains: []int{1, 1, 1}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
	oneDomainAbandons = crowd{name: "HQ, one domain, abandon", scripts: []string{"aa", "aa", "a"}, domains: []int{0, 0, 0}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: 4, Strategy: sim.Uniform(1)}}
)

// countingVotes is the crowd's program, of one domain and a tuning under which the
// lock stays in mode HQ, in which every draining of its queue must be a vote
// against that.
func (c crowd) countingVotes() (sim.Program, sim.Options) {
	p, o := c.program()
	drains, tail := uint32(0), uint32(0)
	roster := &rosters[1]
	setup, check, final := p.Setup, p.Check, p.Final
	p.Setup = func() {
		setup()
		drains, tail = 0, 0
	}
	p.Check = func() error {
		now := roster.tail.Load()
		if tail != 0 && now == 0 {
			drains++
		}
		if tail = now; roster.votes.Load() > drains {
			return fmt.Errorf("%d votes, the queue ran empty %d times", roster.votes.Load(), drains)
		}
		return check()
	}
	p.Final = func() error {
		if votes := roster.votes.Load(); votes != drains {
			return fmt.Errorf("R10: the queue of one domain ran empty %d times, with %d votes for mode Q", drains, votes)
		}
		return final()
	}
	return p, o
}

func TestModelHQ_OneDomainVotesForModeQ(t *testing.T) {
	defer backToReality()
	for _, c := range []crowd{oneDomain, oneDomainAbandons} {
		p, o := c.countingVotes()
		cover(t, c.name, p, o)
	}
}

func TestMutants_OneDomainVotesForModeQ(t *testing.T) {
	defer backToReality()
	p, o := oneDomain.countingVotes()
	sim.RunFaults(t, []sim.Fault{{Mutant: "hq: a crossing counts before it is known who is next", Program: p, Options: o}})
}

// cover explores a program as far as sim.Cover asks for, and by its own strategy,
// which finds its faults, if that is another.
func cover(t *testing.T, name string, p sim.Program, o sim.Options) {
	own := o.Strategy
	if own != sim.Exhaustive(2) && own != sim.PCT(3, 1) {
		o.Strategy = nil
	}
	t.Run(name, func(t *testing.T) { sim.Cover(t, p, o, testing.Short()) })
	if own == o.Strategy || testing.Short() {
		return
	}
	t.Run(name+", "+own.String(), func(t *testing.T) {
		o.Strategy, o.Budget = own, 100_000
		sim.Run(t, p, o)
	})
}
