package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/race"
)

// TestTorture_PassesAndFails runs the command with all its disturbances, on sync2 and on the lock that must fail.
func TestTorture_PassesAndFails(t *testing.T) {
	dir := t.TempDir()
	status, stdout, stderr := start(t, "torture", "-d", "3s", "-stats", "500ms", "-o", dir)
	if status != 0 || stderr != "" || !strings.Contains(stdout, "Torture of sync2: nothing lost") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "torture.html")); err != nil || !strings.Contains(string(page), "nothing lost") {
		t.Errorf("torture.html: %v, want the verdict", err)
	}
	begin := time.Now()
	status, stdout, stderr = start(t, "torture", "-lock", "busted", "-o", dir)
	if took := time.Since(begin); took > 30*time.Second || !race.Enabled && status != exitFailed || !hasReason(stderr) || !strings.Contains(stdout, "FAILED") {
		t.Errorf("busted: status %d after %v, want %d within 30 s, half of what was asked, with a reason\n%s%s", status, took, exitFailed, stdout, stderr)
	}
}

// hasReason reports whether one of the faults of a lock that does not lock is named: two owners, or what comes of them.
func hasReason(stderr string) bool {
	return strings.Contains(stderr, "exclusion: ") || strings.Contains(stderr, "conservation: ")
}
