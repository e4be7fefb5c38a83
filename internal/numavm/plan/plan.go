// Package plan is what host and guest of numavm have to agree on.
package plan

import (
	"fmt"
	"strings"
	"time"
)

// File is the plan's name in the guest's root directory; it is JSON.
const File = "plan.json"

// A Plan is what the guest does before it switches itself off.
type Plan struct{ Jobs []Job }

// A Job is a process.
type Job struct {
	Name    string
	Dir     string
	Command []string
	Env     []string
}

// Lines that the guest writes between those of the jobs.
const (
	begin = "numavm: begin "
	end   = "numavm: end "
	Done  = "numavm: done"
)

// Begin returns the line that says that a job starts.
func Begin(job string) string { return begin + job }

// End returns the line that says how a job ended.
func End(job string, status int, spent time.Duration) string {
	return fmt.Sprintf("%s%s status %d after %v", end, job, status, spent.Round(time.Second/10))
}

// IsBegin reports whether a line is one of Begin, and of which job.
func IsBegin(line string) (job string, ok bool) { return strings.CutPrefix(line, begin) }

// IsEnd reports whether a line is one of End, and of which job with which status.
func IsEnd(line string) (job string, status int, ok bool) {
	rest, ok := strings.CutPrefix(line, end)
	if !ok {
		return "", 0, false
	}
	_, err := fmt.Sscanf(rest, "%s status %d", &job, &status)
	return job, status, err == nil
}
