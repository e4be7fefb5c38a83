package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/race"
)

// TestInstructions_CountsWhatIsKnown: package sync locks and unlocks by two locked instructions, and whatever sync2 does
// for a reader takes one or two. Under the race detector the command refuses.
func TestInstructions_CountsWhatIsKnown(t *testing.T) {
	if race.Enabled {
		if status, _, stderr := start(t, "instructions"); status != exitUsage || !strings.Contains(stderr, "without -race") {
			t.Errorf("under the race detector: status %d, stderr %q", status, stderr)
		}
		return
	}
	if testing.Short() {
		t.Skip("-short: takes a minute on a busy machine")
	}
	status, stdout, stderr := start(t, "instructions", "-filter", "^Mutex Lock|RLock")
	if status == exitFailed && strings.Contains(stderr, "cannot trace a child") {
		t.Skipf("this system lets nobody trace: %s", stderr)
	}
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	rows := regexp.MustCompile(`(?m)^ *(.*?)  +(\d+)(?: \((\d+)\))?  +(\d+)(?: \((\d+)\))? *$`).FindAllStringSubmatch(stdout, -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows of counts, want 2\n%s", len(rows), stdout)
	}
	for _, row := range rows {
		for _, column := range []int{2, 4} {
			if n, _ := strconv.Atoi(row[column]); n < 5 || n > 200 {
				t.Errorf("%s: %d instructions", row[1], n)
			}
		}
		if locksKnown && row[3] != "2" {
			t.Errorf("%s: %s locked instructions in package sync, want 2", row[1], row[3])
		}
	}
}
