//go:build !sync2_std && sim

package sync2

import "testing"

// onMany does nothing: runs of the simulator have many processors.
func onMany(*testing.T) {}
