//go:build !sync2_std && !sim

package sync2

import "testing"

// onMany has the test run as on a machine of many processors.
func onMany(t *testing.T) {
	before := manyFrom
	manyFrom = 1
	t.Cleanup(func() { manyFrom = before })
}
