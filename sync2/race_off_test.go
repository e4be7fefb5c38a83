//go:build !race

package sync2_test

// raceEnabled: see race_on_test.go.
const raceEnabled = false
