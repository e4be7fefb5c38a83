//go:build sim && !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package hq

// ResetForSim makes everything anew that outlives a schedule.
func ResetForSim() {}
