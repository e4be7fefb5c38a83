//go:build !sync2_std

package sync2

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hqsync/hqsync/internal/race"
)

// The storm: goroutines that lock with random timeouts and cancels, for as long
// as HQSYNC_STORM says (5 s if it is not set, 1 s with -short).
func stormTime(t *testing.T) time.Duration {
	d := 5 * time.Second
	if testing.Short() {
		d = time.Second
	}
	if s := os.Getenv("HQSYNC_STORM"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatalf("HQSYNC_STORM=%q is not a duration such as 60s", s)
		}
	}
	return d
}

func stormSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("HQSYNC_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("HQSYNC_SEED=%q is not a number", s)
		}
	}
	t.Logf("HQSYNC_SEED=%d", seed)
	return seed
}

// storm runs n goroutines that call act, each with luck of its own, until the
// time is over and all of outcomes have been counted, and then waits for all: one
// that hangs is a lost wake-up.
func storm(t *testing.T, n int, act func(luck *rand.Rand), outcomes ...*atomic.Int64) {
	t.Helper()
	missing := func() bool {
		return slices.ContainsFunc(outcomes, func(n *atomic.Int64) bool { return n.Load() == 0 })
	}
	if race.Enabled || os.Getenv("HQSYNC_EXEC") != "" {
		n /= 10
	}
	seed, end := stormSeed(t), time.Now().Add(stormTime(t))
	var wg WaitGroup
	for i := range n {
		wg.Go(func() {
			for luck := rand.New(rand.NewPCG(seed, uint64(i))); time.Now().Before(end) || missing() && time.Now().Before(end.Add(time.Minute)); {
				act(luck)
			}
		})
	}
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(2*time.Minute))
	defer cancel()
	if err := wg.WaitContext(ctx); err != nil {
		panic("storm: a goroutine that was not cancelled does not get on") // with every stack
	}
	if missing() {
		t.Error("this was no storm")
	}
}

// patience is mostly too short.
func patience(luck *rand.Rand) time.Duration {
	return time.Duration(luck.ExpFloat64() * float64(200*time.Microsecond))
}

func withPatience(luck *rand.Rand, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if luck.IntN(2) == 0 {
		go cancel()
	} else {
		stop := time.AfterFunc(patience(luck), cancel)
		defer stop.Stop()
	}
	return f(ctx)
}

func TestStormMutex(t *testing.T) {
	defer goleak.VerifyNone(t)
	var m Mutex
	inside, entered := 0, 0
	var acquired, gaveUp atomic.Int64
	storm(t, 1000, func(luck *rand.Rand) {
		ok := true
		switch luck.IntN(4) {
		case 0:
			m.Lock()
		case 1:
			ok = m.TryLock()
		case 2:
			ok = m.TryLockFor(patience(luck))
		case 3:
			ok = withPatience(luck, m.LockContext) == nil
		}
		if !ok {
			gaveUp.Add(1)
			return
		}
		acquired.Add(1)
		if inside++; inside != 1 {
			t.Error("two owners")
		}
		entered++
		inside--
		m.Unlock()
	}, &acquired, &gaveUp)
	t.Logf("%d acquired, %d gave up", acquired.Load(), gaveUp.Load())
	if int64(entered) != acquired.Load() {
		t.Errorf("%d sections of %d acquisitions", entered, acquired.Load())
	}
	checkFree(t, &m)
}

// checkFree checks that m's word has come back to zero, but for a parked bit
// that nobody has had reason to take away.
func checkFree(t *testing.T, m *Mutex) {
	t.Helper()
	if s := m.state.Load(); s&^mutexParked != 0 {
		t.Errorf("state %#x at rest", s)
	}
	if node := m.tag.Load() & tagNode; node != 0 && parkedOn(m) != 0 {
		t.Error("somebody is parked at rest")
	}
	m.Lock()
	m.Unlock()
	if s := m.state.Load(); s != 0 {
		t.Errorf("state %#x after a lock and unlock by nobody else", s)
	}
}

func TestStormRWMutex(t *testing.T) {
	defer goleak.VerifyNone(t)
	onMany(t)
	var rw RWMutex
	var readers, writers, acquired, gaveUp atomic.Int64
	read := func() {
		acquired.Add(1)
		readers.Add(1)
		if writers.Load() != 0 {
			t.Error("a reader beside a writer")
		}
		readers.Add(-1)
		rw.RUnlock()
	}
	storm(t, 1000, func(luck *rand.Rand) {
		kind, ok := luck.IntN(12), true
		switch kind {
		case 0:
			rw.Lock()
		case 1:
			ok = rw.TryLock()
		case 2:
			ok = rw.TryLockFor(patience(luck))
		case 3, 4:
			ok = withPatience(luck, rw.LockContext) == nil
		case 5:
			ok = rw.TryRLock()
		case 6, 7:
			ok = rw.TryRLockFor(patience(luck))
		case 8, 9:
			ok = withPatience(luck, rw.RLockContext) == nil
		default:
			rw.RLock()
		}
		if !ok {
			gaveUp.Add(1)
			return
		}
		if kind >= 5 {
			read()
			return
		}
		acquired.Add(1)
		if writers.Add(1) != 1 || readers.Load() != 0 {
			t.Error("a writer that is not alone")
		}
		writers.Add(-1)
		if kind == 4 {
			rw.Downgrade()
			read()
			return
		}
		rw.Unlock()
	}, &acquired, &gaveUp)
	t.Logf("%d acquired, %d gave up", acquired.Load(), gaveUp.Load())
	rw.Lock() // a lone writer settles what readers counted by P
	rw.Unlock()
	if s := rw.state.Load(); s&^rwCounted != 0 {
		t.Errorf("state %#x at rest", s)
	}
	checkFree(t, &rw.w)
}

// Tickets are handed out by Signal, one each; a waiter whose context ends must
// not take a signal with it.
func TestStormCond(t *testing.T) {
	defer goleak.VerifyNone(t)
	onMany(t)
	var m Mutex
	c := NewCond(&m)
	tickets := 0
	var taken, gaveUp, issued atomic.Int64
	storm(t, 1000, func(luck *rand.Rand) {
		m.Lock()
		defer m.Unlock()
		if luck.IntN(2) == 0 {
			tickets++
			issued.Add(1)
			if luck.IntN(50) == 0 {
				c.Broadcast()
			} else {
				c.Signal()
			}
			return
		}
		for tickets == 0 {
			if withPatience(luck, c.WaitContext) != nil {
				gaveUp.Add(1)
				return
			}
		}
		tickets--
		taken.Add(1)
	}, &taken, &gaveUp)
	t.Logf("%d tickets issued, %d taken, %d waits gave up", issued.Load(), taken.Load(), gaveUp.Load())
	if issued.Load() != taken.Load()+int64(tickets) {
		t.Error("tickets do not add up")
	}
	// No signal is lost: with waiters that never give up, each ticket ends one.
	const n = 100
	var wg WaitGroup
	tickets = 0
	for range n {
		wg.Go(func() {
			m.Lock()
			defer m.Unlock()
			for tickets == 0 {
				c.Wait()
			}
			tickets--
		})
	}
	for range n {
		m.Lock()
		tickets++
		m.Unlock()
		c.Signal()
	}
	wg.Wait()
	checkFree(t, &m)
}

func TestStormWaitGroup(t *testing.T) {
	defer goleak.VerifyNone(t)
	var waited, gaveUp atomic.Int64
	storm(t, 200, func(luck *rand.Rand) {
		var wg WaitGroup
		wg.Add(3)
		done := make(chan bool)
		step := patience(luck) / 8
		go func() {
			defer close(done)
			for range 3 {
				time.Sleep(step)
				wg.Done()
			}
		}()
		var waiters WaitGroup
		for range 5 {
			seed := luck.Uint64()
			waiters.Go(func() {
				mine := rand.New(rand.NewPCG(seed, 1))
				if mine.IntN(3) == 0 {
					wg.Wait()
				} else if withPatience(mine, wg.WaitContext) != nil {
					gaveUp.Add(1)
					return
				}
				waited.Add(1)
				if wg.state.Load()>>32 != 0 {
					t.Error("Wait returned before the counter was 0")
				}
			})
		}
		<-done
		waiters.Wait()
		if s := wg.state.Load(); s != 0 {
			t.Errorf("state %#x at rest", s)
		}
	}, &waited, &gaveUp)
	t.Logf("%d waits, %d gave up", waited.Load(), gaveUp.Load())
}
