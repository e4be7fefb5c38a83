package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/service"
	"github.com/hqsync/hqsync/sync2"
)

// serviceLocks are the locks of the servers by implementation.
var serviceLocks = map[string]service.Locks{
	result.Sync:  {New: func() sync.Locker { return new(sync.Mutex) }, Shards: 1},
	result.Sync2: {New: func() sync.Locker { return new(sync2.Mutex) }, Shards: 1},
	result.Again: {New: func() sync.Locker { return new(sync.Mutex) }, Shards: 1},
	peerSharded:  {New: func() sync.Locker { return new(sync.Mutex) }, Shards: 64},
}

// serviceWorkers are the numbers of workers of the memcached figures of the HQ lock's authors.
var serviceWorkers = []int{32, 64, 128, 256, 384}

type serviceCmd struct {
	KV   kvCmd   `cmd:"" name:"kv" help:"A key-value server with one global lock, under redis-benchmark."`
	HTTP httpCmd `cmd:"" name:"http" help:"A server of one hot file with a lock-protected count of users, under wrk."`
}

func (c *serviceCmd) Help() string {
	return `Measures whole servers: every request goes through one lock, on a port of the loopback interface, and a load generator that
others wrote measures from outside. Both generators work in a closed loop: a connection asks again when it has been answered.
While a server stalls nobody asks, so each stall counts once for each connection, and the percentiles are those of answers,
not of users who come at a rate of their own. That is so with all locks alike: read the ratios, not the times.

Example: go run ./bench service kv

Example: go run ./bench service http -quick

A ratio of 1.03x of requests/s means 3 % more answers in the same time, of 0.95x at p99 that all but one in a hundred
answers came in 0.95 times the time. Most of a request is spent in the kernel and the scheduler, so expect ratios near 1.`
}

// serviceFlags are those of both.
type serviceFlags struct {
	Workers []int `short:"w" placeholder:"N" help:"Connections, each with a goroutine of the server. Default 32,64,128,256,384."`
}

type kvCmd struct{ serviceFlags }

func (c *kvCmd) Help() string {
	return `The memcached case: keys and values in a map under one global lock, reads and writes one to one on each connection, on sync,
sync2 and 64 shards by turns, driven by redis-benchmark. -d is the length of a sample, 1s if it is not given, 400ms with -quick.

Example: go run ./bench service kv -workers 32,384 -d 3s

requests/s of 1.03x means 3 % more answers; a p99 of 0.95x means that the slowest hundredth took 0.95 times as long.
"sharded" shows what is gained by not having one lock.`
}

func (c *kvCmd) Run(b *bench) error {
	return c.run(b, "service-kv", "Key-value server with one global lock, under redis-benchmark", &service.KV)
}

type httpCmd struct{ serviceFlags }

func (c *httpCmd) Help() string {
	return `The nginx case: one hot file, whose count of users changes under a lock at the begin and the end of each request, on sync,
sync2 and 64 counts by turns, driven by wrk. -d is the length of a sample in whole seconds, 1s at least, since wrk counts in them.

Example: go run ./bench service http -workers 32,384 -d 3s

requests/s of 1.03x means 3 % more answers; a p99 of 0.95x means that the slowest hundredth took 0.95 times as long.`
}

func (c *httpCmd) Run(b *bench) error {
	return c.run(b, "service-http", "One hot file with a lock-protected count of users, under wrk", &service.HTTP)
}

func (f *serviceFlags) run(b *bench, name, title string, kind *service.Kind) error {
	workers := f.Workers
	if len(workers) == 0 {
		workers = serviceWorkers
	}
	for _, n := range workers {
		if n < 1 || n > 10_000 {
			return usagef("-workers %d: want 1 to 10000", n)
		}
	}
	switch {
	case b.D == 0 && b.Quick:
		b.D = max(400*time.Millisecond, kind.Shortest)
	case b.D == 0:
		b.D = time.Second
	case b.D < kind.Shortest:
		return usagef("-d %v: want %v or more for %s", b.D, kind.Shortest, kind.Generator)
	}
	if err := kind.Missing(); err != nil { // after the flags: what is wrong with them does not depend on the machine
		return usageError{err}
	}
	return b.run(name, func(procs int) []tableSpec { return []tableSpec{serviceTable(name, title, workers, procs, kind)} })
}

// serviceTable has a cell for each number of workers. The targets are that nothing gets worse: more cannot be expected
// of a lock among system calls.
func serviceTable(name, title string, workers []int, procs int, kind *service.Kind) tableSpec {
	t := tableSpec{
		name: name, title: title,
		note: "requests/s and percentiles of the time to an answer as the generator reports them; its connections, the workers, ask again once they are answered, so a stall counts once for each",
	}
	for _, n := range workers {
		t.cells = append(t.cells, cell{
			name: fmt.Sprintf("%s/workers=%d", name, n), label: fmt.Sprintf("%d workers", n), params: map[string]int{"workers": n},
			procs: procs, peers: []string{peerSharded},
			take: func(ctx context.Context, arm string, d time.Duration) (harness.Sample, error) {
				return serve(ctx, kind, arm, n, d)
			},
			rows: []rowSpec{
				{measure: result.Rate, target: result.AtLeast(0.97)},
				{measure: result.P50},
				{measure: result.P99, target: result.AtMost(1.10)},
				{measure: result.P999},
			},
		})
	}
	return t
}

// serve takes a sample: a fresh server, and its generator once; again, for longer, if it got no answer at all.
func serve(ctx context.Context, kind *service.Kind, arm string, workers int, d time.Duration) (harness.Sample, error) {
	s, err := kind.Start(serviceLocks[arm])
	if err != nil {
		return harness.Sample{}, err
	}
	defer s.Close()
	l, err := kind.Drive(ctx, s, workers, d)
	for again := 1; errors.Is(err, service.ErrNothing) && again < attempts; again++ {
		d = 2 * max(d, kind.Shortest)
		l, err = kind.Drive(ctx, s, workers, d)
	}
	if err != nil {
		return harness.Sample{}, err
	}
	return harness.Sample{
		Ops: l.Requests, Busy: l.Span, Span: l.Span,
		Waits: harness.Summary{Count: int64(l.Requests), P50: l.P50, P99: l.P99, P999: l.P999, Max: l.Max},
	}, nil
}
