//go:build sim

package numasim

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/locks"
)

// Effort is how much is simulated for one figure.
type Effort struct {
	Places int // so many placements of the threads, whose mean is taken
	Ops    int // acquisitions in each; more if that is less than 100 per thread
}

// Thorough is for a report, Quick for tests, Glance for a look: the fewer placements, the more figures of few threads scatter.
var (
	Thorough = Effort{Places: 6, Ops: 100_000}
	Quick    = Effort{Places: 3, Ops: 25_000}
	Glance   = Effort{Places: 2, Ops: 6_000}
)

// Measure tortures the lock with the given effort.
func Measure(m Machine, lock string, threads int, effort Effort) (Outcome, error) {
	if most := len(m.CPUs); threads < 1 || threads > most {
		return Outcome{}, fmt.Errorf("numasim: %d threads on %s; want 1 to %d", threads, m.Name, most)
	}
	ops := max(effort.Ops, 100*threads)
	if most, ok := slow[lock]; ok {
		ops = min(ops, most)
	}
	outcomes := make([]Outcome, effort.Places)
	errs := make([]error, effort.Places)
	each := inParallel
	if lock == Ours { // its queue nodes belong to the process
		each = inSequence
	}
	each(effort.Places, func(i int) {
		outcomes[i], errs[i] = Run{Machine: m, Lock: lock, Threads: threads, Ops: ops, Seed: uint64(i + 1)}.Torture()
	})
	for _, err := range errs {
		if err != nil {
			return Outcome{}, err
		}
	}
	return mean(outcomes), nil
}

// Patient measures Ours with waiters that spin for as long as it takes, which pinned goroutines must not: it tells what
// their sleep costs.
func Patient(m Machine, threads int, effort Effort) (Outcome, error) {
	before := hq.CurrentTunables()
	after := before
	after.Budget = time.Second
	if err := hq.SetTunables(after); err != nil {
		return Outcome{}, err
	}
	defer hq.SetTunables(before)
	return Measure(m, Ours, threads, effort)
}

// slow names locks of which every hand-over moves a line to every waiter, or whose waiters look at the clock, with the
// acquisitions that have to suffice.
var slow = map[string]int{"tas": 1000, "ttas": 5000, "ticket": 1000, Ours: 60_000}

// inParallel calls f(0) to f(n-1), on as many goroutines as there are CPUs.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, min(runtime.GOMAXPROCS(0), 4))
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			f(i)
			<-room
		})
	}
	wg.Wait()
}

func inSequence(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

func mean(outcomes []Outcome) (m Outcome) {
	n := float64(len(outcomes))
	for _, o := range outcomes {
		m.PerOp += o.PerOp / n
		m.Local += o.Local / n
		m.Remote += o.Remote / n
		m.TopHalf += o.TopHalf / n
		m.MaxMin += o.MaxMin / n
	}
	return m
}

// Gain is by how many per cent o does more per time than base.
func (o Outcome) Gain(base Outcome) float64 { return 100 * (base.PerOp/o.PerOp - 1) }

// Baseline is what other locks are compared with, Compared what is compared if nothing else is asked for.
const Baseline = "qspinlock"

var Compared = []string{"hqkernel", Ours}

// LockNames lists what Run.Lock can be.
func LockNames() []string {
	var names []string
	for _, k := range locks.Kinds {
		names = append(names, k.Name)
	}
	return append(names, Ours)
}
