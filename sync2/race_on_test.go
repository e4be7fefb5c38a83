//go:build race

package sync2_test

// raceEnabled: the race detector is on, in this binary and in those that tests build.
const raceEnabled = true
