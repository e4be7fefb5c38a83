//go:build sim && !race

package sim_test

const raceEnabled = false
