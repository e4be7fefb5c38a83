package locktest

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Sleeper is a goroutine that a test started and whose state the test wants to know. The runtime is asked through
// runtime.Stack, which stops the world: meant for tens of goroutines, not for a hot loop.
type Sleeper struct {
	id   uint64
	done chan struct{}
}

// Start runs f in a new goroutine and returns when that goroutine is about to call f.
func Start(f func()) *Sleeper {
	s := &Sleeper{done: make(chan struct{})}
	ids := make(chan uint64)
	go func() {
		defer close(s.done)
		ids <- goroutineID()
		f()
	}()
	s.id = <-ids
	return s
}

// Done is closed when the goroutine has ended.
func (s *Sleeper) Done() <-chan struct{} { return s.done }

// Ended reports whether the goroutine has ended.
func (s *Sleeper) Ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// State returns the wait reason from the goroutine's header in a dump ("running", "sync.Mutex.Lock", ...) and its
// stack; both are empty if it has ended.
func (s *Sleeper) State() (reason, stack string) {
	for _, g := range Goroutines() {
		if g.ID == s.id {
			return g.Reason, g.Stack
		}
	}
	return "", ""
}

// WaitAsleep returns once the goroutine is blocked in f. It fails if the goroutine ends first or is not asleep within
// the given time.
func (s *Sleeper) WaitAsleep(patience time.Duration) error {
	nap := 20 * time.Microsecond
	for end := time.Now().Add(patience); ; time.Sleep(nap) {
		nap = min(2*nap, 5*time.Millisecond)
		reason, stack := s.State()
		switch {
		case s.Ended():
			return fmt.Errorf("goroutine %d ended instead of falling asleep", s.id)
		case Blocked(reason):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("goroutine %d is not asleep after %v but %q:\n%s", s.id, patience, reason, stack)
		}
	}
}

// WaitAllAsleep is WaitAsleep for many goroutines, of which none may end: one dump tells about all of them.
func WaitAllAsleep(all []*Sleeper, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		blocked := map[uint64]bool{}
		for _, g := range Goroutines() {
			blocked[g.ID] = Blocked(g.Reason)
		}
		awake := 0
		for _, s := range all {
			if !blocked[s.id] {
				awake++
			}
		}
		switch {
		case awake == 0:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%d of %d goroutines are not asleep after %v", awake, len(all), patience)
		}
	}
}

// WaitEnded fails if the goroutine is still there after the given time.
func (s *Sleeper) WaitEnded(patience time.Duration) error {
	select {
	case <-s.done:
		return nil
	case <-time.After(patience):
		reason, stack := s.State()
		return fmt.Errorf("lost: goroutine %d has not come back within %v, it is %q:\n%s", s.id, patience, reason, stack)
	}
}

// Goroutine is one entry of a goroutine dump.
type Goroutine struct {
	ID     uint64
	Reason string // without "N minutes", "(durable)" and the like
	Stack  string // the frames as printed, header left out
}

// Goroutines returns a dump of all goroutines, parsed.
func Goroutines() []Goroutine {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return ParseGoroutines(string(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}

// ParseGoroutines parses the output of runtime.Stack or of a crash.
func ParseGoroutines(dump string) []Goroutine {
	var gs []Goroutine
	for block := range strings.SplitSeq(dump, "\n\n") {
		header, stack, _ := strings.Cut(strings.TrimLeft(block, "\n"), "\n")
		rest, ok := strings.CutPrefix(header, "goroutine ")
		if !ok {
			continue
		}
		number, rest, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		_, rest, _ = strings.Cut(rest, "[")
		reason, _, _ := strings.Cut(rest, "]")
		reason, _, _ = strings.Cut(reason, ",")
		// "chan receive (nil chan)" is a reason of its own; "(durable)", "(scan)" and "(leaked)" are remarks.
		for _, remark := range []string{" (scan)", " (durable)", " (leaked)"} {
			reason = strings.ReplaceAll(reason, remark, "")
		}
		gs = append(gs, Goroutine{ID: id, Reason: reason, Stack: stack})
	}
	return gs
}

// Blocked reports whether a wait reason means that the goroutine sleeps until somebody wakes it.
func Blocked(reason string) bool {
	switch reason {
	case "", "idle", "running", "runnable", "syscall", "preempted", "copystack", "sleep", "waiting", "dead":
		return false
	}
	// "GC assist wait", "GC scavenge wait", "stopping the world", "wait for debug call", "flushing proc caches", ...
	for _, passing := range []string{"GC ", "stopping ", "wait for ", "flushing ", "trace ", "semacquire", "force gc", "finalizer", "cleanup"} {
		if strings.HasPrefix(reason, passing) {
			return false
		}
	}
	return true
}

// goroutineID reads the caller's number from its dump.
func goroutineID() uint64 {
	var buf [64]byte
	fields := bytes.Fields(buf[:runtime.Stack(buf[:], false)])
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic("locktest: goroutine header without a number: " + string(buf[:]))
	}
	return id
}
