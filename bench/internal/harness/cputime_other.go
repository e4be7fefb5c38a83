//go:build !unix

package harness

import "time"

// cpuTime is unknown here: columns that need it stay empty.
func cpuTime() time.Duration { return 0 }
