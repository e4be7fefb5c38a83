package locktest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A crew is the set of goroutines of one check. The first error stops it. It uses channels and package sync only: the
// lock under test must not be needed to find out that the lock under test is broken.
type crew struct {
	Options
	stop    atomic.Bool
	alive   atomic.Int64
	members sync.WaitGroup

	mu    sync.Mutex
	first error
}

func newCrew(o Options) *crew { return &crew{Options: o} }

// start runs work in a goroutine of the crew. A goroutine that ends by runtime.Goexit is gone without an error.
func (c *crew) start(work func() error) {
	c.alive.Add(1)
	c.members.Add(1)
	go func() {
		defer c.members.Done()
		defer c.alive.Add(-1)
		if err := work(); err != nil {
			c.fail(err)
		}
	}()
}

// loop starts n workers that each take turns until the crew stops. Between two turns a worker touches nothing that
// another worker writes: an atomic operation there would be an edge that hides a missing one of the lock from the race
// detector.
func (c *crew) loop(n int, turn func(id int, r *rand.Rand) error) {
	for id := range n {
		r := c.rng(id)
		c.start(func() error {
			for !c.stop.Load() {
				if err := turn(id, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		c.first = err
	}
	c.stop.Store(true)
}

func (c *crew) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// run lets the workers go on for the time box and then collects them.
func (c *crew) run() error {
	for end := time.Now().Add(c.Duration); time.Now().Before(end) && !c.stop.Load(); {
		time.Sleep(min(time.Millisecond, time.Until(end)))
	}
	c.stop.Store(true)
	return c.wait()
}

// wait collects the crew; it returns its first error, or that some of it never came back.
func (c *crew) wait() error {
	done := make(chan struct{})
	go func() { c.members.Wait(); close(done) }()
	for end := time.Now().Add(c.Patience); time.Now().Before(end); {
		select {
		case <-done:
			return c.err()
		case <-time.After(10 * time.Millisecond):
			// A worker that found a fault has left the lock as it was, and the others may wait for it in vain.
			if err := c.err(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("lost: %d goroutines have not come back within %v", c.alive.Load(), c.Patience)
}

// first runs the steps up to the first error. After a lost goroutine the later steps would read what it may still write.
func first(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// A room is what a lock guards.
type room struct {
	plain  [2]uint64 // equal whenever no writer is inside
	covert [2]atomic.Uint64
	hidden bool // use covert, which the race detector does not complain about

	// counted rooms know who is inside, so that a violation shows even if no update is lost. Others leave all ordering to
	// the lock, so that the race detector can miss it.
	counted          bool
	writers, readers atomic.Int32

	writes []uint64 // by worker
}

func (c *crew) newRoom(counted bool) *room {
	return &room{hidden: c.Hidden, counted: counted, writes: make([]uint64, c.Goroutines)}
}

// bump adds one to word i by a load and a store, never by one atomic operation: two writers at a time lose updates.
func (r *room) bump(i int) {
	if r.hidden {
		r.covert[i].Store(r.covert[i].Load() + 1)
		return
	}
	r.plain[i]++
}

func (r *room) word(i int) uint64 {
	if r.hidden {
		return r.covert[i].Load()
	}
	return r.plain[i]
}

// count adds to the heads inside and then looks: with writers and, unless shared, without readers is how it must be.
func (r *room) count(who string, addWriters, addReaders, writers int32, shared bool) error {
	if !r.counted {
		return nil
	}
	r.writers.Add(addWriters)
	r.readers.Add(addReaders)
	w, n := r.writers.Load(), r.readers.Load()
	if w != writers || n != 0 && !shared {
		return fmt.Errorf("exclusion: %s and there are %d writers and %d readers inside", who, w, n)
	}
	return nil
}

// write is the body of an exclusive section of worker id; during runs while the two words differ.
func (r *room) write(id int, during func()) error {
	if err := r.count("a writer came in", 1, 0, 1, false); err != nil {
		return err
	}
	r.bump(0)
	during()
	r.bump(1)
	if a, b := r.word(0), r.word(1); a != b {
		return fmt.Errorf("exclusion: the guarded words differ at the end of a section: %d and %d", a, b)
	}
	r.writes[id]++
	return r.count("a writer left", -1, 0, 0, false)
}

// read is the body of a shared section.
func (r *room) read(during func()) error {
	if err := r.count("a reader came in", 0, 1, 0, true); err != nil {
		return err
	}
	before := r.word(0)
	during()
	if a, b := r.word(0), r.word(1); a != before || a != b {
		return fmt.Errorf("exclusion: the guarded words changed under a reader: %d, then %d and %d", before, a, b)
	}
	return r.count("a reader left", 0, -1, 0, true)
}

// audit checks at rest that no update was lost.
func (r *room) audit() error {
	n := uint64(0)
	for _, w := range r.writes {
		n += w
	}
	if a := r.word(0); a != n {
		return fmt.Errorf("exclusion: %d writes left %d in the guarded word", n, a)
	}
	return nil
}

// work burns about n small steps.
func work(n int) {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1
	}
	runtime.KeepAlive(x)
}

// pause is what happens inside or outside a section: usually next to nothing, now and then a yield or a sleep.
func (c *crew) pause(r *rand.Rand) {
	switch n := r.IntN(64); {
	case n < 32:
	case n < 56 || c.Lacks&Blocking != 0:
		work(r.IntN(256))
	case n < 62:
		runtime.Gosched()
	default:
		time.Sleep(time.Duration(r.IntN(50)) * time.Microsecond)
	}
}
