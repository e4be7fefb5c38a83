//go:build !linux

package harness

import "time"

// ThreadTime is unknown here: columns that need it stay empty.
func ThreadTime() time.Duration { return 0 }
