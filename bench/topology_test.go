package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopology_PrintsThisMachine(t *testing.T) {
	t.Setenv("SYNC2", "")
	status, stdout, stderr := start(t, "topology")
	for _, want := range []string{"node 0", "domain 0: cpus ", "cpus allowed ", "the caller "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q:\n%s", want, stdout)
		}
	}
	if status != 0 || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

func TestTopology_ObeysTheEnvironment(t *testing.T) {
	t.Setenv("SYNC2", "topology=2x3x4")
	status, stdout, stderr := start(t, "topology")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "└─ domain 5: cpus 20-23") || !strings.Contains(stdout, "(synthetic)") {
		t.Errorf("status %d, stderr %q\n%s", status, stderr, stdout)
	}
	t.Setenv("SYNC2", "topology=2x3x4,domains=sockets")
	status, stdout, stderr = start(t, "topology")
	if status != exitFailed || !strings.Contains(stdout, "domain 5") || !strings.Contains(stderr, `domains cannot be "sockets"; allowed: llc, node or none`) {
		t.Errorf("status %d, stderr %q\n%s", status, stderr, stdout)
	}
}

func TestTopology_ReadsACopy(t *testing.T) {
	dir := t.TempDir()
	online := filepath.Join(dir, "sys", "devices", "system", "cpu", "online")
	if err := os.MkdirAll(filepath.Dir(online), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(online, []byte("0-6\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := start(t, "topology", "-root", dir); status != 0 || stderr != "" || !strings.Contains(stdout, "domain 0: cpus 0-6\n") {
		t.Errorf("status %d, stderr %q\n%s", status, stderr, stdout)
	}
	if err := os.WriteFile(online, []byte("0-x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := start(t, "topology", "-root", dir); status != exitFailed || stdout != "" || !strings.Contains(stderr, `cpu/online: item "0-x" of "0-x": "x" is not a number`) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
