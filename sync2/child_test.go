package sync2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
)

// Some questions need a process of their own: fatal errors, deadlocks, runs with other runtime settings. For these the
// test binary starts itself, and init runs the part that the environment names, before package testing has started any
// timer that would keep the runtime from seeing a deadlock.
const (
	childEnv   = "HQSYNC_TEST_CHILD"   // the part to run
	subjectEnv = "HQSYNC_TEST_SUBJECT" // on which subject
	timeEnv    = "HQSYNC_TEST_TIME"    // for how long
	// execEnv holds the command that starts a test binary which this machine cannot start by itself, such as
	// "qemu-aarch64-static -cpu max".
	execEnv = "HQSYNC_EXEC"
)

var childParts = map[string]func(s subject){}

// child registers a part under its name, which it returns. Call it in the initialisation of a variable.
func child(name string, run func(s subject)) string {
	if childParts[name] != nil {
		panic("two child parts have the name " + name)
	}
	childParts[name] = run
	return name
}

func init() {
	name, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	run := childParts[name]
	for _, s := range subjects {
		if run != nil && s.name == os.Getenv(subjectEnv) {
			// In a goroutine, because the main one is locked to its thread during initialisation.
			done := make(chan struct{})
			go func() { run(s); close(done) }()
			<-done
			os.Exit(0)
		}
	}
	fmt.Fprintf(os.Stderr, "no child part %q or no subject %q\n", name, os.Getenv(subjectEnv))
	os.Exit(3)
}

// seedFromEnv and childTime are what the test that started this process wants.
func seedFromEnv() uint64 {
	seed, err := strconv.ParseUint(os.Getenv(locktest.SeedEnv), 0, 64)
	if err != nil {
		panic(err)
	}
	return seed
}

func childTime() time.Duration {
	d, err := time.ParseDuration(os.Getenv(timeEnv))
	if err != nil {
		panic(err)
	}
	return d
}

type childResult struct {
	stdout, stderr string
	exit           int // -1 if it was killed
	timedOut       bool
}

func (r childResult) String() string {
	return fmt.Sprintf("exit status %d, timed out: %v\nstdout:\n%s\nstderr:\n%s", r.exit, r.timedOut, brief(r.stdout), brief(r.stderr))
}

// brief leaves out the middle of a long text.
func brief(text string) string {
	const limit = 6000
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s\n... %d bytes left out ...\n%s", text[:limit/2], len(text)-limit, text[len(text)-limit/2:])
}

// runtimeSettings are variables that change what a Go process prints or how it is scheduled. Children get them only from
// the test that starts them.
var runtimeSettings = []string{"GOTRACEBACK=", "GODEBUG=", "GOGC=", "GOMEMLIMIT=", "GOMAXPROCS=", "GORACE="}

func childEnviron(extra ...string) []string {
	var env []string
next:
	for _, kv := range os.Environ() {
		for _, setting := range runtimeSettings {
			if strings.HasPrefix(kv, setting) {
				continue next
			}
		}
		env = append(env, kv)
	}
	// Without this a process with the race detector waits a second before it exits.
	return append(append(env, "GORACE=atexit_sleep_ms=0"), extra...)
}

// emulated reports whether this binary was built for another machine. Tests that call the go command are then skipped.
func emulated() bool { return os.Getenv(execEnv) != "" }

// startChild runs a part on a subject in a process of its own, and kills it after the given time.
func startChild(t *testing.T, s subject, part string, patience time.Duration, env ...string) childResult {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(strings.Fields(os.Getenv(execEnv)), self)
	return runCommand(t, patience, childEnviron(append(env, childEnv+"="+part, subjectEnv+"="+s.name)...), "", argv...)
}

// runCommand runs argv and fails the test only if it cannot be started. A Go process that takes too long prints where its
// goroutines are.
func runCommand(t *testing.T, patience time.Duration, env []string, dir string, argv ...string) childResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 20 * time.Second // then it is killed
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) && ctx.Err() == nil {
		t.Fatalf("cannot run %q: %v", argv, err)
	}
	return childResult{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), ctx.Err() != nil}
}
