// Package torture uses locks as roughly as a program can, for as long as it is told to, and watches them.
//
// It is Linux's locktorture for goroutines: members take and leave locks in every way that there is, hold them for as
// long and stall as often as locktorture's do, and meanwhile disturbances change what the locks depend on: the number of
// Ps, the garbage collector, the buckets of the parking table, the CPUs that threads may use, and whether the process
// runs at all. Three things are checked. Exclusion: with plain variables, so that the race detector can watch too.
// Progress: a watchdog looks at every member. Conservation: every few seconds all members come to rest, and then every
// lock must be free, nobody parked, and the sections as many as the acquisitions.
package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// A Config says what to do. The zero value of a number means its default.
type Config struct {
	Locks    string        // one of Names
	Duration time.Duration // how long
	Members  int           // goroutines on each lock; default 8
	Rooms    int           // locks of each kind; default 3
	Stats    time.Duration // between two lines of statistics; default 5 s
	Patience time.Duration // how long a member may make no progress; default 15 s
	Without  []string      // disturbances to leave out, of Disturbances
	Seed     uint64        // of all random choices but the scheduler's; 0: random
	Log      io.Writer     // statistics
	Dump     io.Writer     // parked goroutines and stacks after a failure
}

func (c Config) withDefaults() Config {
	c.Members = orDefault(c.Members, 8)
	c.Rooms = orDefault(c.Rooms, 3)
	c.Stats = orDefault(c.Stats, 5*time.Second)
	c.Patience = orDefault(c.Patience, 15*time.Second)
	c.Seed = orDefault(c.Seed, rand.Uint64())
	return c
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// restEvery is the time between two rests.
const restEvery = 2 * time.Second

// session is one run.
type session struct {
	Config
	locks   *locks
	members []*member
	rooms   []room
	gate    gate
	alive   sync.WaitGroup // members
	struck  tally          // disturbances by name, and rests
	course  []Moment

	failOnce sync.Once
	failed   chan struct{}
	reason   error
}

// A room is a lock with what it protects.
type room interface {
	// rouse ends the waits of those who wait for another member. The gate is shut.
	rouse()
	// inspect looks at the room when all members are at rest.
	inspect() error
}

// Run tortures the locks until the time is over, the context ends or something is wrong. The error is the first thing
// that was wrong; members may then hang for ever.
func Run(ctx context.Context, c Config) (Report, error) {
	c = c.withDefaults()
	made, err := locksNamed(c.Locks)
	if err != nil {
		return Report{}, err
	}
	chosen, err := disturbancesBut(c.Without)
	if err != nil {
		return Report{}, err
	}
	s := &session{Config: c, locks: made, failed: make(chan struct{})}
	for i := range c.Rooms {
		s.enlistMutex(i)
		s.enlistRWMutex(i)
		s.enlistCond(i)
		s.enlistWaitGroup(i)
	}
	fmt.Fprintf(c.Log, "torture: %s for %v, %d members, seed %d\n", c.Locks, c.Duration, len(s.members), c.Seed)

	begin := time.Now()
	calm := s.disturb(chosen)
	stopWatching := s.watch()
	for _, m := range s.members {
		s.alive.Add(1)
		go m.live()
	}
	s.endure(ctx, begin)
	if s.err() == nil {
		s.dismiss()
	}
	calm()
	stopWatching()
	return s.report(time.Since(begin)), s.err()
}

// crew adds n members that repeat turn until they are dismissed.
func (s *session) crew(kind string, n int, turn func(m *member)) []*member {
	from := len(s.members)
	for range n {
		id := int32(len(s.members) + 1)
		luck := rand.New(rand.NewPCG(s.Seed, uint64(id)))
		s.members = append(s.members, &member{s: s, id: id, kind: kind, crew: n, turn: turn, luck: luck})
	}
	return s.members[from:]
}

// endure lets it happen, with statistics and rests in between.
func (s *session) endure(ctx context.Context, begin time.Time) {
	over := time.NewTimer(s.Duration)
	defer over.Stop()
	stats := time.NewTicker(s.Stats)
	defer stats.Stop()
	rest := time.NewTicker(restEvery)
	defer rest.Stop()
	for {
		select {
		case <-stats.C:
			s.printStats(time.Since(begin))
		case <-rest.C:
			s.rest()
			s.gate.open()
		case <-s.failed:
			return
		case <-ctx.Done():
			return
		case <-over.C:
			return
		}
	}
}

// dismiss lets the members come to rest once more, and go.
func (s *session) dismiss() {
	s.rest()
	s.gate.dismiss()
	s.unlessFailed(s.alive.Wait)
}

// rest shuts the gate, waits until all members stand before it and looks at the locks. That nobody is too late is the
// watchdog's business.
func (s *session) rest() {
	s.gate.close()
	s.unlessFailed(func() {
		for _, r := range s.rooms {
			r.rouse()
		}
		for _, m := range s.members {
			for !m.resting.Load() {
				time.Sleep(time.Millisecond)
			}
		}
		s.inspect()
	})
}

// unlessFailed calls f, which uses locks that may be broken, and leaves it alone if that shows.
func (s *session) unlessFailed(f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-s.failed:
	}
}

// inspect looks at all locks with everybody at rest.
func (s *session) inspect() {
	for _, r := range s.rooms {
		if err := r.inspect(); err != nil {
			s.fail("%w, with everybody at rest", err)
			return
		}
	}
	if n := s.locks.parked(); n != 0 {
		s.fail("progress: %d goroutines are parked with everybody at rest", n)
	}
	s.struck.add("rest")
}

// fail records the first thing that is wrong.
func (s *session) fail(format string, args ...any) {
	s.failOnce.Do(func() {
		s.reason = fmt.Errorf(format, args...)
		s.gate.dismissed.Store(true)
		close(s.failed)
	})
}

func (s *session) err() error {
	select {
	case <-s.failed:
		return s.reason
	default:
		return nil
	}
}
