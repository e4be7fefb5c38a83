//go:build !sim

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestNumasim_WithoutTheSimulatorSaysWhatToDo(t *testing.T) {
	for _, args := range [][]string{{"numasim"}, {"numasim", "hash", "-quick"}} {
		var stdout, stderr bytes.Buffer
		if status := run(args, &stdout, &stderr); status != exitUsage {
			t.Errorf("%v: status %d, want %d", args, status, exitUsage)
		}
		if text := stderr.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "go run -tags sim ./bench numasim") {
			t.Errorf("%v: %q, want one line that says what to run", args, text)
		}
	}
}
