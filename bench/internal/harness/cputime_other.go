//go:build !unix

package harness

import "time"

// CPUTime is unknown here: columns that need it stay empty.
func CPUTime() time.Duration { return 0 }
