package sync2_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/sync2"
)

// The tests of this package ask whether sync2 can replace package sync without being noticed. Wherever that is possible
// a test runs on package sync first, as the control: an expectation that sync itself does not meet is no expectation.

// facts are what a build of sync2 promises. The tests take their expectations from here, so that what a build does not
// promise stands in one place.
type facts struct {
	name  string
	tags  string          // build tags that select this build
	sizes map[string]size // as package sync's; a type that is missing may differ

	wraps        bool // methods of package sync stand above those of sync2 in stacks
	waitReasons  bool // goroutine dumps, traces and the mutex metric name the primitive
	profiles     bool // the block profile shows the method that waited and its caller
	mutexProfile bool // the mutex profile shows the method that unlocked and its caller
	leaksSeen    bool // the goroutine leak profile lists leaked waiters
	allocFree    bool // a wait allocates nothing in the steady state
	inlinesLock  bool // Mutex.Lock inlines into its caller
}

type size struct{ bytes, align int }

// goVersion is the toolchain that built this binary, without experiments.
var goVersion, _, _ = cut(runtime.Version())

func cut(version string) (before, after string, found bool) {
	for i, c := range version {
		if c == ' ' || c == '-' {
			return version[:i], version[i+1:], true
		}
	}
	return version, "", false
}

const (
	syncPath  = "sync"
	sync2Path = "github.com/hqsync/hqsync/sync2"
)

type cond interface {
	Wait()
	Signal()
	Broadcast()
}

type waitGroup interface {
	Add(delta int)
	Done()
	Wait()
	Go(f func())
}

// A subject is one of the packages that tests compare.
type subject struct {
	name         string // for subtests and child processes
	path         string // import path
	newMutex     func() locktest.Mutex
	newRWMutex   func() rwMutex
	newCond      func(l sync.Locker) cond
	newWaitGroup func() waitGroup
}

type rwMutex interface {
	locktest.RWMutex
	RLocker() sync.Locker
}

var control = subject{
	name:         "sync",
	path:         syncPath,
	newMutex:     func() locktest.Mutex { return new(sync.Mutex) },
	newRWMutex:   func() rwMutex { return new(sync.RWMutex) },
	newCond:      func(l sync.Locker) cond { return sync.NewCond(l) },
	newWaitGroup: func() waitGroup { return new(sync.WaitGroup) },
}

var ours = subject{
	name:         "sync2",
	path:         sync2Path,
	newMutex:     func() locktest.Mutex { return new(sync2.Mutex) },
	newRWMutex:   func() rwMutex { return new(sync2.RWMutex) },
	newCond:      func(l sync.Locker) cond { return sync2.NewCond(l) },
	newWaitGroup: func() waitGroup { return new(sync2.WaitGroup) },
}

var subjects = []subject{control, ours}

// onEach runs f as a subtest on package sync and on sync2.
func onEach(t *testing.T, f func(t *testing.T, s subject)) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) { f(t, s) })
	}
}

// testTime is how long a test that tries its luck goes on: a fifth of d under -short.
func testTime(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 5
	}
	return d
}

// A blocker is a way to make a goroutine wait on a primitive of a subject.
type blocker struct {
	method string // as a dump names it
	// prepare returns a function that blocks until the second one is called.
	prepare func(s subject) (block, release func())
}

var blockers = []blocker{
	{"sync.Mutex.Lock", func(s subject) (func(), func()) {
		m := s.newMutex()
		m.Lock()
		return func() { m.Lock(); m.Unlock() }, m.Unlock
	}},
	{"sync.RWMutex.RLock", func(s subject) (func(), func()) {
		m := s.newRWMutex()
		m.Lock()
		return func() { m.RLock(); m.RUnlock() }, m.Unlock
	}},
	{"sync.RWMutex.Lock", func(s subject) (func(), func()) {
		m := s.newRWMutex()
		m.RLock()
		return func() { m.Lock(); m.Unlock() }, m.RUnlock
	}},
	{"sync.Cond.Wait", func(s subject) (func(), func()) {
		m := s.newMutex()
		c := s.newCond(m)
		return func() { m.Lock(); c.Wait(); m.Unlock() }, c.Signal
	}},
	{"sync.WaitGroup.Wait", func(s subject) (func(), func()) {
		wg := s.newWaitGroup()
		wg.Add(1)
		return func() { wg.Wait() }, wg.Done
	}},
}
