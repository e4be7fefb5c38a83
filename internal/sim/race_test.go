//go:build sim && race

package sim_test

// raceEnabled: a step takes thirty times as long.
const raceEnabled = true
