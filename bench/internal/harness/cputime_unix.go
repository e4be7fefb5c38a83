//go:build unix

package harness

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the user and system time of the process so far, 0 if the system does not say.
func CPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
