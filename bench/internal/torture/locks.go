package torture

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/parking"
	"github.com/hqsync/hqsync/sync2"
)

// locks makes the locks of one implementation. Those that lack the timed forms are used without.
type locks struct {
	name      string
	mutex     func() mutex
	rwMutex   func() rwMutex
	cond      func(sync.Locker) cond
	waitGroup func() waitGroup
	table     *parking.Table // where its waiters park; nil: nowhere that can be looked at
}

type mutex interface {
	sync.Locker
	TryLock() bool
}

type rwMutex interface {
	mutex
	RLock()
	RUnlock()
	TryRLock() bool
}

type timed interface {
	TryLockFor(d time.Duration) bool
	LockContext(ctx context.Context) error
}

type timedReader interface {
	TryRLockFor(d time.Duration) bool
	RLockContext(ctx context.Context) error
}

type downgrader interface{ Downgrade() }

type cond interface {
	Wait()
	Signal()
	Broadcast()
}

type waitGroup interface {
	Add(delta int)
	Done()
	Wait()
}

// contextWaiter is what sync2's Cond and WaitGroup add.
type contextWaiter interface {
	WaitContext(ctx context.Context) error
}

// all are the implementations by name. The last two must fail: they show that torture can tell.
var all = []locks{
	{
		name:      "sync2",
		mutex:     func() mutex { return new(sync2.Mutex) },
		rwMutex:   func() rwMutex { return new(sync2.RWMutex) },
		cond:      func(l sync.Locker) cond { return sync2.NewCond(l) },
		waitGroup: func() waitGroup { return new(sync2.WaitGroup) },
		table:     parking.Default(),
	},
	{
		name:      "sync",
		mutex:     func() mutex { return new(sync.Mutex) },
		rwMutex:   func() rwMutex { return new(sync.RWMutex) },
		cond:      func(l sync.Locker) cond { return sync.NewCond(l) },
		waitGroup: func() waitGroup { return new(sync.WaitGroup) },
	},
	faulty("busted", locktest.DoubleGrant), // now and then an unlock lets two in
	faulty("forgetful", locktest.LostWake), // now and then an unlock wakes nobody
}

func faulty(name string, fault locktest.Fault) locks {
	return locks{
		name:      name,
		mutex:     func() mutex { return locktest.NewModel(fault) },
		rwMutex:   func() rwMutex { return locktest.NewModel(fault) },
		cond:      func(l sync.Locker) cond { return sync.NewCond(l) },
		waitGroup: func() waitGroup { return new(sync.WaitGroup) },
	}
}

// Names returns what Config.Locks may be.
func Names() []string {
	var names []string
	for _, l := range all {
		names = append(names, l.name)
	}
	return names
}

func locksNamed(name string) (*locks, error) {
	for i := range all {
		if all[i].name == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("unknown lock %q: want one of %s", name, strings.Join(Names(), ", "))
}

// parked returns the number of goroutines that wait in the table.
func (l *locks) parked() int {
	n := 0
	if l.table != nil {
		l.table.Waiters(func(parking.WaiterInfo) bool { n++; return true })
	}
	return n
}
