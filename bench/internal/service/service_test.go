package service

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var kinds = map[string]*Kind{"kv": &KV, "http": &HTTP}

func TestServers_AnswerTheirGenerators(t *testing.T) {
	for name, kind := range kinds {
		if err := kind.Missing(); err != nil {
			t.Logf("skipped: %v", err)
			continue
		}
		for _, shards := range []int{1, 8} {
			s, err := kind.Start(Locks{New: func() sync.Locker { return new(sync.Mutex) }, Shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			d := 50 * time.Millisecond
			l, err := kind.Drive(context.Background(), s, 8, d)
			for ; errors.Is(err, ErrNothing) && d < 5*time.Second; d *= 4 { // on a starved machine
				l, err = kind.Drive(context.Background(), s, 8, d)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if l.Requests == 0 || l.Span <= 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max+time.Millisecond {
				t.Errorf("%s: load %+v makes no sense", name, l)
			}
			port := s.Port()
			s.Close()
			if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				c.Close()
				t.Errorf("%s: port %d still answers after Close", name, port)
			}
		}
	}
}

func TestCancel_EndsTheGenerator(t *testing.T) {
	for name, kind := range kinds {
		if err := kind.Missing(); err != nil {
			t.Logf("skipped: %v", err)
			continue
		}
		s, err := kind.Start(Locks{New: func() sync.Locker { return new(sync.Mutex) }, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		begin := time.Now()
		_, err = kind.Drive(ctx, s, 4, time.Minute)
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
			t.Errorf("%s: %v after %v, want the context's error at once", name, err, took)
		}
		cancel()
		s.Close()
	}
}

const redisOutput = `====== MIX key:__rand_int__ v ======
  30000 requests completed in 0.37 seconds
  50 parallel clients

Latency by percentile distribution:
0.000% <= 0.088 milliseconds (cumulative count 1)
99.609% <= 0.735 milliseconds (cumulative count 29883)
99.902% <= 1.103 milliseconds (cumulative count 29971)
100.000% <= 1.199 milliseconds (cumulative count 30000)

Summary:
  throughput summary: 80862.53 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.312     0.088     0.303     0.447     0.567     1.199
`

func TestParseRedis(t *testing.T) {
	l, err := parseRedis(redisOutput)
	us := time.Microsecond
	if err != nil || l.Requests != 30000 || l.P50 != 303*us || l.P99 != 567*us || l.P999 != 1103*us || l.Max != 1199*us || l.Span.Round(time.Millisecond) != 371*time.Millisecond {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"", "Error from server: ERR\n" + redisOutput, strings.Replace(redisOutput, "p50", "", 1)[:400]} {
		if l, err := parseRedis(bad); err == nil {
			t.Errorf("%.60q: %+v, want an error", bad, l)
		}
	}
}

func TestParseWrk(t *testing.T) {
	l, err := parseWrk("Running\n  1234 requests\nRESULT 1234 1000000 300 900 1500 2000 ERRORS 0 0 0 0 0\n")
	us := time.Microsecond
	if err != nil || l != (Load{Requests: 1234, Span: time.Second, P50: 300 * us, P99: 900 * us, P999: 1500 * us, Max: 2000 * us}) {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"", "RESULT 1 2 3", "RESULT 1234 1000000 300 900 1500 2000 ERRORS 0 1 0 0 0\n", "RESULT 0 1000000 0 0 0 0 ERRORS 0 0 0 0 0\n"} {
		if l, err := parseWrk(bad); err == nil {
			t.Errorf("%q: %+v, want an error", bad, l)
		}
	}
}
