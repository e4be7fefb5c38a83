//go:build !sync2_std && !sim

package sync2

import "testing"

// onMany has the test run as on a machine of many processors.
func onMany(t *testing.T) {
	from, word := manyFrom, inWord
	manyFrom, inWord = 1, false
	t.Cleanup(func() { manyFrom, inWord = from, word })
}
