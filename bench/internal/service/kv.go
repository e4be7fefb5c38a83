package service

import (
	"bufio"
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/tidwall/redcon"
)

// The data of the key-value benchmark, as memtier's defaults go.
const (
	keys      = 100_000
	valueSize = 32
)

const redisBenchmark = "redis-benchmark"

// KV is the key-value server.
var KV = Kind{
	Generator: redisBenchmark,
	Install:   "apt-get install redis-tools, or leave service kv out",
	Shortest:  10 * time.Millisecond,
	Start:     startKV,
	Drive:     driveKV,
}

// store is a map under a lock, or several that share the keys.
type store struct {
	seed   maphash.Seed
	shards []shard
	mixed  atomic.Uint64
}

type shard struct {
	_    harness.Pad
	mu   sync.Locker
	data map[string][]byte
	_    harness.Pad
}

func (s *store) of(key []byte) *shard {
	if len(s.shards) == 1 {
		return &s.shards[0]
	}
	return &s.shards[maphash.Bytes(s.seed, key)%uint64(len(s.shards))]
}

func (s *store) get(key []byte) ([]byte, bool) {
	sh := s.of(key)
	sh.mu.Lock()
	value, ok := sh.data[string(key)]
	sh.mu.Unlock()
	return value, ok
}

// set keeps the value, of which it makes a copy.
func (s *store) set(key, value []byte) {
	value = append([]byte(nil), value...)
	sh := s.of(key)
	sh.mu.Lock()
	sh.data[string(key)] = value
	sh.mu.Unlock()
}

func startKV(locks Locks) (*Server, error) {
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	s := &store{seed: maphash.MakeSeed(), shards: make([]shard, locks.Shards)}
	for i := range s.shards {
		s.shards[i].mu, s.shards[i].data = locks.New(), map[string][]byte{}
	}
	server := redcon.NewServer("", s.handle, func(c redcon.Conn) bool { c.SetContext(new(turn)); return true }, nil)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }() // it returns because it is closed
	return &Server{listener: listener, served: s.mixed.Load, close: func() { _ = server.Close(); _ = listener.Close(); <-ended }}, nil
}

// turn says whether a connection's next MIX writes.
type turn struct{ writes bool }

// handle answers what redis-benchmark asks. It sends one command over and over, so a mixture of reads and writes is a
// command of its own here: MIX KEY VALUE is by turns GET KEY and SET KEY VALUE, one to one on each connection.
func (s *store) handle(c redcon.Conn, cmd redcon.Command) {
	switch name := strings.ToUpper(string(cmd.Args[0])); {
	case name == "MIX" && len(cmd.Args) == 3:
		s.mixed.Add(1)
		t := c.Context().(*turn)
		if t.writes = !t.writes; t.writes {
			s.set(cmd.Args[1], cmd.Args[2])
			c.WriteString("OK")
		} else {
			s.reply(c, cmd.Args[1])
		}
	case name == "GET" && len(cmd.Args) == 2:
		s.reply(c, cmd.Args[1])
	case name == "SET" && len(cmd.Args) == 3:
		s.set(cmd.Args[1], cmd.Args[2])
		c.WriteString("OK")
	case name == "PING":
		c.WriteString("PONG")
	case name == "CONFIG" && len(cmd.Args) == 3: // redis-benchmark shows the persistence settings: none
		c.WriteArray(2)
		c.WriteBulk(cmd.Args[2])
		c.WriteBulkString("")
	default:
		c.WriteError("ERR unknown command or wrong number of arguments: " + name)
	}
}

func (s *store) reply(c redcon.Conn, key []byte) {
	if value, ok := s.get(key); ok {
		c.WriteBulk(value)
	} else {
		c.WriteNull()
	}
}

// rates remembers how many requests a second the last samples had: redis-benchmark takes a number, not a time.
var rates = struct {
	sync.Mutex
	of map[int]float64 // by workers
}{of: map[int]float64{}}

// guess is the rate before there is one, fewest the least number of requests of each connection.
const (
	guess  = 30_000.0
	fewest = 20
)

func requestsFor(workers int, d time.Duration) int {
	rates.Lock()
	defer rates.Unlock()
	rate, known := rates.of[workers]
	if !known {
		rate = guess
	}
	return max(int(rate*d.Seconds()), fewest*workers)
}

func driveKV(ctx context.Context, s *Server, workers int, d time.Duration) (Load, error) {
	n := requestsFor(workers, d)
	before := s.served()
	begin := time.Now()
	out, err := generate(ctx, d, redisBenchmark, "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port()), "-c", strconv.Itoa(workers),
		"-n", strconv.Itoa(n), "-r", strconv.Itoa(keys), "--precision", "3", "MIX", "key:__rand_int__", strings.Repeat("v", valueSize))
	if err != nil {
		return Load{}, err
	}
	l, err := parseRedis(out)
	if err != nil {
		return Load{}, err
	}
	if got := s.served() - before; got < l.Requests {
		return Load{}, fmt.Errorf("bench: %s counted %d requests, the server %d", redisBenchmark, l.Requests, got)
	}
	rates.Lock()
	rates.of[workers] = float64(l.Requests) / max(l.Span, time.Since(begin)/2).Seconds()
	rates.Unlock()
	return l, nil
}

// parseRedis reads the summary and the distribution that redis-benchmark prints:
//
//	  30000 requests completed in 0.37 seconds
//	...
//	99.902% <= 1.103 milliseconds (cumulative count 29971)
//	...
//	  throughput summary: 80862.53 requests per second
//	  latency summary (msec):
//	          avg       min       p50       p95       p99       max
//	        0.312     0.088     0.303     0.447     0.567     1.199
//
// The distribution halves what is left from line to line, so the percentile closest to 99.9 is 99.902.
func parseRedis(out string) (Load, error) {
	var l Load
	var rate float64
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(out, "\r", "\n")))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		var percent, ms float64
		var count uint64
		switch {
		case strings.Contains(line, "rror"):
			return Load{}, fmt.Errorf("bench: %s reports: %s", redisBenchmark, line)
		case scan(line, "%d requests completed in %f seconds", &count, &ms):
			l.Requests = count
		case scan(line, "%f%% <= %f milliseconds (cumulative count %d)", &percent, &ms, &count):
			if percent >= 99.9 && l.P999 == 0 {
				l.P999 = milliseconds(ms)
			}
		case scan(line, "throughput summary: %f requests per second", &rate):
		case strings.HasPrefix(line, "avg"):
			lines.Scan()
			var avg, least, p50, p95, p99, most float64
			if !scan(strings.TrimSpace(lines.Text()), "%f %f %f %f %f %f", &avg, &least, &p50, &p95, &p99, &most) {
				return Load{}, fmt.Errorf("%w: no latencies below %q", errOutput, line)
			}
			l.P50, l.P99, l.Max = milliseconds(p50), milliseconds(p99), milliseconds(most)
		}
	}
	if l.Requests == 0 || rate <= 0 || l.P50 <= 0 || l.P99 <= 0 || l.P999 <= 0 {
		return Load{}, fmt.Errorf("%w: %.300s", errOutput, out)
	}
	l.Span = time.Duration(float64(l.Requests) / rate * float64(time.Second))
	return l, nil
}

// scan reports whether the line has the form, with the values in it. They may have changed even if not.
func scan(line, form string, values ...any) bool {
	n, err := fmt.Sscanf(line, form, values...)
	return err == nil && n == len(values)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
