//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego && sim

package hq

// ResetForSim makes everything anew that outlives a schedule.
func ResetForSim() {
	clear(nodes[:])
	clear(slots[:])
}
