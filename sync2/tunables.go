package sync2

import (
	"fmt"
	"time"

	"github.com/hqsync/hqsync/internal/env"
)

// Tunables are the figures by which goroutines wait for a Mutex. Services leave
// them alone, or set the environment variable SYNC2, of which this package obeys
// slice, spin and asymmetric; [SetTunables] is for tests and measurements. Under
// the build tag sync2_std they have no effect.
//
// That the defaults are good ones shows
//
//	go run ./bench tune
type Tunables struct {
	// Slice is the least time between two hand-overs of one mutex to a waiter
	// that has been overtaken for 1ms: 1us to 1s, by default 50us. Shorter slices
	// make long waits rarer and throughput lower.
	Slice time.Duration

	// Spin is how long a goroutine waits at a locked mutex, with four tries in that
	// time, before it parks: 0 to 1s, by default 6us. With one P it parks at once.
	Spin time.Duration

	// Asymmetric says that a mutex which nobody waits for is unlocked without an
	// atomic read-modify-write. Only linux/amd64 can change it, to false at any
	// time, and to true where it was true at the start of the process.
	Asymmetric bool
}

const (
	defaultSlice = 50 * time.Microsecond
	defaultSpin  = 6 * time.Microsecond
)

// The tunables that are in force, in ns. They are read on slow paths only.
var (
	tunedSlice = initially("slice", defaultSlice)
	tunedSpin  = initially("spin", defaultSpin)
)

// initially is a tunable at the start of the process: what the environment
// variable says, else its default.
func initially(key string, d time.Duration) *atomicUint64 {
	if value, ok := env.Lookup(key); ok {
		d, _ = time.ParseDuration(value) // env has checked it
	}
	word := new(atomicUint64)
	word.Store(uint64(d))
	return word
}

// sliceLength returns Tunables.Slice in ns. It may be called pinned.
func sliceLength() int64 { return int64(tunedSlice.Load()) }

// spinLimit returns Tunables.Spin in ns. It may be called pinned.
func spinLimit() int64 { return int64(tunedSpin.Load()) }

// CurrentTunables returns what is in force, for a change of some of it and for
// putting it back.
func CurrentTunables() Tunables {
	return Tunables{
		Slice:      time.Duration(sliceLength()),
		Spin:       time.Duration(spinLimit()),
		Asymmetric: asymmetric(),
	}
}

// SetTunables puts t in force for all mutexes, also those in use: waits that
// have begun may go on under the former values. If one of the values is not
// allowed it returns an error that names the value and what is, and changes
// nothing.
func SetTunables(t Tunables) error {
	for _, f := range []struct {
		name, key string
		value     time.Duration
	}{{"Slice", "slice", t.Slice}, {"Spin", "spin", t.Spin}} {
		if allowed, ok := env.Allowed(f.key, f.value.String()); !ok {
			return fmt.Errorf("sync2: Tunables.%s cannot be %v; allowed: %s", f.name, f.value, allowed)
		}
	}
	if !switchAsymmetric(t.Asymmetric) {
		return fmt.Errorf("sync2: Tunables.Asymmetric cannot be %t in this process; allowed: %t", t.Asymmetric, !t.Asymmetric)
	}
	tunedSlice.Store(uint64(t.Slice))
	tunedSpin.Store(uint64(t.Spin))
	return nil
}
