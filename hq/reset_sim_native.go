//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego && sim

package hq

import "github.com/hqsync/hqsync/internal/sim"

// simUsed is 1 more than the rosters that programs use: the first ones.
const simUsed = 8

// ResetForSim makes everything anew that outlives a schedule: a run has few Ps
// and few locks in mode HQ. Its caller is the Setup of a program.
func ResetForSim() {
	simDomains = 1
	for p := range sim.Procs() {
		simDomains = max(simDomains, sim.Domain(p)+1)
	}
	clear(nodes[:max(32, sim.Procs())*nodesPerP])
	clear(slots[:])
	clear(rosters[:simUsed])
	for d := range min(simDomains, maxDomains) {
		clear(cohorts[d][:simUsed])
	}
	clear(supply[:])
	inUse, mostUse = atomicUint32{}, atomicUint32{}
}
