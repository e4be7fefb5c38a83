package sync2

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hqsync/hqsync/internal/env"
)

// Tunables are the figures by which goroutines wait for a Mutex. Services leave
// them alone, or set the environment variable SYNC2, of which this package obeys
// slice, spin, batch and asymmetric; [SetTunables] is for tests and measurements. Under
// the build tag sync2_std they have no effect.
//
// Other values beside the defaults:
//
//	go run ./bench tune
type Tunables struct {
	// Slice is the least time between two hand-overs of one mutex to a waiter
	// that has been overtaken for 1ms: 1us to 1s, by default 50us. Shorter slices
	// make long waits rarer and throughput lower.
	Slice time.Duration

	// Spin is how long a goroutine waits at a locked mutex, with a few tries in that
	// time, before it parks: 0 to 1s, by default 6us. It waits up to twice as long
	// if the sections are short, half of that if others wait for its P as well, and
	// otherwise not at all if they do, or if there is only one P.
	Spin time.Duration

	// Batch is how many requests have to wait for the goroutine that leaves
	// Mutex.Do to have them run in a batch: 1 to 31, by default 4; 0: never, Do then
	// always calls its function itself.
	Batch int

	// Asymmetric says that a mutex which nobody waits for is unlocked without an
	// atomic read-modify-write. Only linux/amd64 can change it, to false at any
	// time, and to true where it was true at the start of the process.
	Asymmetric bool
}

const (
	defaultSlice = 50 * time.Microsecond
	defaultSpin  = 6 * time.Microsecond
	defaultBatch = 4
)

// The tunables that are in force, times in ns. They are read on slow paths only.
var (
	tunedSlice = initially("slice", defaultSlice)
	tunedSpin  = initially("spin", defaultSpin)
	tunedBatch = initialBatch()
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

func initialBatch() *atomicUint64 {
	n := uint64(defaultBatch)
	if value, ok := env.Lookup("batch"); ok {
		n, _ = strconv.ParseUint(value, 10, 64)
	}
	word := new(atomicUint64)
	word.Store(n)
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
		Batch:      int(tunedBatch.Load()),
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
		value     any
	}{{"Slice", "slice", t.Slice}, {"Spin", "spin", t.Spin}, {"Batch", "batch", t.Batch}} {
		if allowed, ok := env.Allowed(f.key, fmt.Sprint(f.value)); !ok {
			return fmt.Errorf("sync2: Tunables.%s cannot be %v; allowed: %s", f.name, f.value, allowed)
		}
	}
	if !switchAsymmetric(t.Asymmetric) {
		return fmt.Errorf("sync2: Tunables.Asymmetric cannot be %t in this process; allowed: %t", t.Asymmetric, !t.Asymmetric)
	}
	tunedSlice.Store(uint64(t.Slice))
	tunedSpin.Store(uint64(t.Spin))
	tunedBatch.Store(uint64(t.Batch))
	return nil
}
