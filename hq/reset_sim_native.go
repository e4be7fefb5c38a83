//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego && sim

package hq

// ResetForSim makes everything anew that outlives a schedule: a run has few Ps.
func ResetForSim() {
	clear(nodes[:32*nodesPerP])
	clear(slots[:])
}
