package service

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
)

const wrk = "wrk"

// HTTP is the server of one hot file.
var HTTP = Kind{
	Generator: wrk,
	Install:   "apt-get install wrk, or leave service http out",
	Shortest:  shortestWrk,
	Start:     startHTTP,
	Drive:     driveHTTP,
}

// fileSize is that of the hot file: the transfer shall not hide the look-up.
const fileSize = 1 << 10

// hotFile is an open file with a count of those who use it, as the entry of a directory cache has. To open and to close
// it takes the lock, twice in a request.
type hotFile struct {
	content []byte
	changed time.Time
	seed    maphash.Seed
	counts  []count
	served  atomic.Uint64
}

type count struct {
	_    harness.Pad
	mu   sync.Locker
	uses int
	_    harness.Pad
}

// open counts a user of a connection.
func (f *hotFile) open(connection string) *count {
	c := &f.counts[0]
	if len(f.counts) > 1 {
		c = &f.counts[maphash.String(f.seed, connection)%uint64(len(f.counts))]
	}
	c.mu.Lock()
	c.uses++
	c.mu.Unlock()
	return c
}

func (c *count) close() {
	c.mu.Lock()
	c.uses--
	c.mu.Unlock()
}

func (f *hotFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := f.open(r.RemoteAddr)
	defer c.close()
	f.served.Add(1) // before the generator can count it
	http.ServeContent(w, r, "hot.txt", f.changed, bytes.NewReader(f.content))
}

func startHTTP(locks Locks) (*Server, error) {
	f := &hotFile{content: bytes.Repeat([]byte("hot\n"), fileSize/4), changed: time.Now(), seed: maphash.MakeSeed(), counts: make([]count, locks.Shards)}
	for i := range f.counts {
		f.counts[i].mu = locks.New()
	}
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: spare}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }() // it returns because it is closed
	return &Server{listener: listener, served: f.served.Load, close: func() { _ = server.Close(); <-ended }}, nil
}

// wrkScript prints what wrk itself prints only in part: microseconds, and errors by kind.
const wrkScript = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d ERRORS %d %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max,
    e.connect, e.read, e.write, e.status, e.timeout))
end
`

// shortestWrk is the shortest time that wrk can run: it counts in seconds.
const shortestWrk = time.Second

func driveHTTP(ctx context.Context, s *Server, workers int, d time.Duration) (Load, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return Load{}, err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "done.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o600); err != nil {
		return Load{}, err
	}
	seconds := int(max(d, shortestWrk).Round(time.Second).Seconds())
	before := s.served()
	out, err := generate(ctx, d, wrk, "-t", "1", "-c", strconv.Itoa(workers), "-d", strconv.Itoa(seconds)+"s",
		"-s", script, fmt.Sprintf("http://127.0.0.1:%d/hot.txt", s.Port()))
	if err != nil {
		return Load{}, err
	}
	l, err := parseWrk(out)
	if got := s.served() - before; err == nil && got < l.Requests {
		return Load{}, fmt.Errorf("bench: %s counted %d requests, the server %d", wrk, l.Requests, got)
	}
	return l, err
}

// parseWrk reads the line of wrkScript.
func parseWrk(out string) (Load, error) {
	_, line, found := strings.Cut(out, "RESULT ")
	var l Load
	var took, p50, p99, p999, most int64
	var e [5]uint64
	if !found || !scan(line, "%d %d %d %d %d %d ERRORS %d %d %d %d %d", &l.Requests, &took, &p50, &p99, &p999, &most, &e[0], &e[1], &e[2], &e[3], &e[4]) {
		return Load{}, fmt.Errorf("%w: %.300s", errOutput, out)
	}
	if e != [5]uint64{} {
		return Load{}, fmt.Errorf("bench: %s reports errors: connect %d, read %d, write %d, status %d, timeout %d", wrk, e[0], e[1], e[2], e[3], e[4])
	}
	if l.Requests == 0 || took <= 0 || p50 <= 0 {
		return Load{}, fmt.Errorf("%w: %.100s", ErrNothing, line)
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	l.Span, l.P50, l.P99, l.P999, l.Max = us(took), us(p50), us(p99), us(p999), us(most)
	return l, nil
}
