// Package service has two small servers whose every request goes through one lock, and drives them with the load
// generators that their big brothers are measured with: a key-value server under redis-benchmark, as memcached under
// memtier, and one hot file under wrk, as nginx under wrk.
//
// Servers listen on the loopback interface, on a port that the system chooses, in this process. Generators are children
// that live no longer than the sample.
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hqsync/hqsync/bench/internal/child"
)

// Locks make the locks of a server.
type Locks struct {
	New func() sync.Locker
	// Shards is the number of locks that share the work: 1 for a global lock.
	Shards int
}

// A Server is one that runs.
type Server struct {
	listener net.Listener
	served   func() uint64 // requests of the kind that is measured
	close    func()
}

// Port returns the port that it listens on.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close ends the server and all its connections.
func (s *Server) Close() { s.close() }

func listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: no port on the loopback interface: %w", err)
	}
	return l, nil
}

// A Load is what a generator reports.
type Load struct {
	Requests            uint64
	Span                time.Duration
	P50, P99, P999, Max time.Duration
}

// A Kind is a server with its generator.
type Kind struct {
	Generator string        // the command
	Install   string        // how to get it
	Shortest  time.Duration // sample
	Start     func(Locks) (*Server, error)
	// Drive loads the server through that many connections for about that time.
	Drive func(ctx context.Context, s *Server, workers int, d time.Duration) (Load, error)
}

// Missing returns an error that says what to do if the generator is not installed.
func (k *Kind) Missing() error {
	if _, err := exec.LookPath(k.Generator); err != nil {
		return fmt.Errorf("%s is not installed; %s", k.Generator, k.Install)
	}
	return nil
}

// spare is how much longer than planned a generator may take before it is ended.
const spare = 30 * time.Second

// generate runs the generator and returns what it printed. It returns an error if the generator complains.
func generate(ctx context.Context, d time.Duration, name string, args ...string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, 4*d+spare)
	defer cancel()
	cmd := exec.CommandContext(bounded, name, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := child.Run(cmd)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case bounded.Err() != nil:
		return "", fmt.Errorf("bench: %s did not end in %v", name, 4*d+spare)
	case err != nil:
		return "", fmt.Errorf("bench: %s: %w: %.300s", name, err, strings.TrimSpace(errs.String()+" "+out.String()))
	case errs.Len() > 0:
		return "", fmt.Errorf("bench: %s complains: %.300s", name, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// ErrNothing: not one request was answered. On a busy machine a longer sample may help.
var ErrNothing = errors.New("bench: nothing was served")

// errOutput: the generator's version is not one that this package can read.
var errOutput = errors.New("bench: cannot read the generator's output")
