//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import "time"

// A tally counts what waiters on one P have done: pinned goroutines, so one at a
// time, write plainly, and a reader of another P's tally may be a little late.
type tally struct {
	local, remote, steals, abandons, skips uint64
	pinned, spun                           int64 // the longest pinned wait, ns, without what was stolen, without all gaps
	_                                      [72]byte
}

var tallies [maxPs]tally

// tallyOf returns the tally of the P that owns the node ref.
//
//go:norace
func tallyOf(ref uint32) *tally { return &tallies[(ref-1)/nodesPerP] }

// tallyHere returns the tally of the calling goroutine's P.
//
//go:norace
func tallyHere() *tally {
	p := pin() // the caller is pinned already: this only tells the number
	unpin()
	return &tallies[p%maxPs]
}

// switches counts what is rare.
var switches struct{ inflations, deflations, exhausted atomicUint64 }

//go:norace
func readStats() Stats {
	s := Stats{
		InHQ: int(inUse.Load()), MostHQ: int(mostUse.Load()), Rosters: int(rosterLimit()),
		Inflations: switches.inflations.Load(), Deflations: switches.deflations.Load(), Exhausted: switches.exhausted.Load(),
	}
	for i := range tallies {
		t := &tallies[i]
		s.LocalHandOvers += t.local
		s.RemoteHandOvers += t.remote
		s.Steals += t.steals
		s.Abandons += t.abandons
		s.Skips += t.skips
		s.LongestPinned = max(s.LongestPinned, time.Duration(t.pinned))
		s.LongestSpun = max(s.LongestSpun, time.Duration(t.spun))
	}
	return s
}
