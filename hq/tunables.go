package hq

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hqsync/hqsync/internal/env"
)

// Tunables are the figures by which Locks wait and change their mode. Services
// leave them alone, or set the environment variable SYNC2, whose key for each
// field is in parentheses; [SetTunables] is for tests and measurements. In builds
// that cannot pin they have no effect.
type Tunables struct {
	// A domain's waiters hand a lock in mode HQ among themselves at most Local
	// times (hq.local: 1 to 1000000, by default 128) and for at most LocalTime
	// (hq.localtime: 1us to 1s, by default 10us) while another domain waits:
	// its waiters spend their Budget meanwhile.
	Local     int
	LocalTime time.Duration

	// A lock goes to mode HQ when its queue, since it was empty, has seen more
	// than HandOvers hand-overs (hq.handovers: 0 to 1000000, by default 50) and
	// among them more than Crossings from a domain to another (hq.crossings: 0 to
	// 1000000, by default 2). A crossing counts, in both modes, only after at least
	// Streak hand-overs inside a domain (hq.streak: 0 to 1000000, by default 3),
	// since otherwise there are too few waiters of one domain.
	HandOvers int
	Crossings int
	Streak    int

	// A lock leaves mode HQ when its queue has become empty Votes times in a row
	// (hq.votes: 1 to 1000000, by default 8) with fewer than Keep crossings
	// before (hq.keep: 0 to 1000000, by default 1).
	Keep  int
	Votes int

	// Budget is for how long a goroutine spins pinned before it sleeps (hq.budget:
	// 1us to 1s, by default 30us). A stop-the-world waits for it.
	Budget time.Duration

	// Patience is how long the head of a queue lets others barge (hq.patience: 1us to
	// 1s, by default 1us, which is how often it looks at the clock), and a quarter of
	// how long a lone waiter does. From Budget on it has no effect.
	Patience time.Duration
}

// tuning is Tunables as slow paths read them.
type tuning struct {
	local, streak, keep, votes  uint32
	handOvers, crossings        int64 // model programs have -1 here: inflate at once
	localTime, budget, patience int64 // ns
}

var (
	defaults = Tunables{Local: 128, LocalTime: 10 * time.Microsecond, HandOvers: 50, Crossings: 2, Streak: 3, Keep: 1, Votes: 8,
		Budget: 30 * time.Microsecond, Patience: time.Microsecond}
	defaultTuning = defaults.tuning()
	inForce       atomicPointer[tuning] // nil: defaultTuning
)

// tuned returns what is in force. It may be called pinned.
//
//go:norace
func tuned() *tuning {
	if t := inForce.Load(); t != nil {
		return t
	}
	return &defaultTuning
}

func (t Tunables) tuning() tuning {
	return tuning{
		local: uint32(t.Local), handOvers: int64(t.HandOvers), crossings: int64(t.Crossings), streak: uint32(t.Streak),
		keep: uint32(t.Keep), votes: uint32(t.Votes),
		localTime: int64(t.LocalTime), budget: int64(t.Budget), patience: int64(t.Patience),
	}
}

// CurrentTunables returns what is in force, for a change of some of it and for
// putting it back.
func CurrentTunables() Tunables {
	t := tuned()
	return Tunables{
		Local: int(t.local), LocalTime: time.Duration(t.localTime),
		HandOvers: int(t.handOvers), Crossings: int(t.crossings), Streak: int(t.streak),
		Keep: int(t.keep), Votes: int(t.votes),
		Budget: time.Duration(t.budget), Patience: time.Duration(t.patience),
	}
}

// SetTunables puts t in force for all locks, also those in use: waits that have
// begun go on under the former values. If one of the values is not allowed it
// returns an error that names the value and what is, and changes nothing.
func SetTunables(t Tunables) error {
	for _, f := range t.fields() {
		if allowed, ok := env.Allowed(f.key, f.String()); !ok {
			return fmt.Errorf("hq: Tunables.%s cannot be %s; allowed: %s", f.name, f, allowed)
		}
	}
	n := t.tuning()
	inForce.Store(&n)
	return nil
}

// A field is one of Tunables; the other pointer is nil.
type field struct {
	name, key string
	number    *int
	duration  *time.Duration
}

func (t *Tunables) fields() []field {
	return []field{
		{"Local", "hq.local", &t.Local, nil},
		{"LocalTime", "hq.localtime", nil, &t.LocalTime},
		{"HandOvers", "hq.handovers", &t.HandOvers, nil},
		{"Crossings", "hq.crossings", &t.Crossings, nil},
		{"Streak", "hq.streak", &t.Streak, nil},
		{"Keep", "hq.keep", &t.Keep, nil},
		{"Votes", "hq.votes", &t.Votes, nil},
		{"Budget", "hq.budget", nil, &t.Budget},
		{"Patience", "hq.patience", nil, &t.Patience},
	}
}

// String returns the value as the environment variable has it.
func (f field) String() string {
	if f.number != nil {
		return strconv.Itoa(*f.number)
	}
	return f.duration.String()
}

// set takes a value that package env has checked.
func (f field) set(value string) {
	if f.number != nil {
		*f.number, _ = strconv.Atoi(value)
	} else {
		*f.duration, _ = time.ParseDuration(value)
	}
}

// tuneByEnvironment puts in force what the environment variable says. Values that
// SetTunables has set before stay if it says nothing about them.
func tuneByEnvironment() {
	t, found := CurrentTunables(), false
	for _, f := range t.fields() {
		if value, ok := env.Lookup(f.key); ok {
			f.set(value)
			found = true
		}
	}
	if found {
		n := t.tuning()
		inForce.Store(&n)
	}
}
