//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego && !race && !sim

package hq

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What a bucket's lock costs when nobody contends depends on it.
func TestFastPathsInline(t *testing.T) {
	if os.Getenv("HQSYNC_EXEC") != "" {
		t.Skip("the go command is not for the emulator")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Skipf("no go command here: %v", err)
	}
	for _, name := range []string{"LockPinned", "TryLockPinned", "UnlockPinned"} {
		if !strings.Contains(string(out), "can inline (*Lock)."+name) {
			t.Errorf("%s does not inline", name)
		}
	}
}
