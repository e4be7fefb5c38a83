package harness

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the CPU time of the calling thread so far, 0 if the system does not say. The caller is locked to
// its thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
