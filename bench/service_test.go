package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/service"
)

// generators are the load generators by subcommand.
var generators = map[string]*service.Kind{"kv": &service.KV, "http": &service.HTTP}

func TestService_WithoutItsGenerator_SaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for sub, kind := range generators {
		status, stdout, stderr := start(t, "service", sub, "-o", t.TempDir())
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, kind.Generator+" is not installed; apt-get install") {
			t.Errorf("service %s: status %d, stdout %q, stderr %q; want %d and one line that says what to install", sub, status, stdout, stderr, exitUsage)
		}
	}
}

// needs skips the test if the generator is not installed.
func needs(t *testing.T, kind *service.Kind) {
	t.Helper()
	if err := kind.Missing(); err != nil {
		t.Skip(err)
	}
}

// TestService_ComparesSideBySide runs kv only: http differs in its generator, which runs for whole seconds.
func TestService_ComparesSideBySide(t *testing.T) {
	needs(t, &service.KV)
	dir := t.TempDir()
	status, stdout, stderr := start(t, "service", "kv", "-workers", "4", "-samples", "6", "-d", "50ms", "-o", dir)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	f, err := os.Open(filepath.Join(dir, "service-kv.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	rows := r.Tables[0].Rows
	if len(rows) != 4 {
		t.Fatalf("%d rows, want requests/s and three percentiles", len(rows))
	}
	for _, row := range rows {
		if !row.Ratio.Known() || !row.Gauge.Known() || !row.Peers[peerSharded].Known() {
			t.Errorf("%s: ratio %+v, gauge %+v, peers %+v, want intervals", row.Measure, row.Ratio, row.Gauge, row.Peers)
		}
	}
}
