package torture

import (
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/hqsync/hqsync/parking"
)

// watchTick is how often the watchdog looks. It counts its looks, not the time, which goes on while the process is
// stopped.
const watchTick = 100 * time.Millisecond

// watch starts the watchdog: who neither ends a turn nor rests for as long as Config.Patience has lost something.
func (s *session) watch() (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(watchTick)
		defer ticker.Stop()
		w := watchdog{last: make([]uint64, len(s.members)), idle: make([]int, len(s.members)), limit: int(s.Patience / watchTick)}
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			if stuck := w.look(s.members); len(stuck) > 0 && s.err() == nil {
				s.fail("progress: member %d (%s) and %d others have not got on for %v: a wake-up was lost", stuck[0].id, stuck[0].kind, len(stuck)-1, s.Patience)
				s.dump()
			}
		}
	}()
	return func() { close(quit); <-gone }
}

type watchdog struct {
	last  []uint64
	idle  []int // looks since the last progress
	limit int
}

// look returns the members that have made no progress for too long.
func (w *watchdog) look(members []*member) (stuck []*member) {
	for i, m := range members {
		turns := m.turns.Load()
		if turns != w.last[i] || m.resting.Load() {
			w.last[i], w.idle[i] = turns, 0
			continue
		}
		if w.idle[i]++; w.idle[i] >= w.limit {
			stuck = append(stuck, m)
		}
	}
	return stuck
}

// dump shows who is parked, and where everybody is.
func (s *session) dump() {
	s.dumpParked()
	fmt.Fprintln(s.Dump, "\ngoroutines, those with the same stack together:")
	_ = pprof.Lookup("goroutine").WriteTo(s.Dump, 1)
}

// dumpParked lists the queues of the table, the longest wait first.
func (s *session) dumpParked() {
	if s.locks.table == nil {
		fmt.Fprintf(s.Dump, "torture: the waiters of %s are in no table\n", s.locks.name)
		return
	}
	queues := map[parking.Key][]parking.WaiterInfo{}
	s.locks.table.Waiters(func(w parking.WaiterInfo) bool {
		queues[w.Key] = append(queues[w.Key], w)
		return true
	})
	keys := slices.SortedFunc(maps.Keys(queues), func(a, b parking.Key) int { return int(longest(queues[b]) - longest(queues[a])) })
	fmt.Fprintf(s.Dump, "torture: goroutines parked at %d addresses\n", len(keys))
	for _, key := range keys {
		since := "untimed"
		if d := longest(queues[key]); d != 0 {
			since = "the longest for " + d.Round(time.Millisecond).String()
		}
		fmt.Fprintf(s.Dump, "  %#x: %d parked, %s\n", key.Addr, len(queues[key]), since)
	}
	fmt.Fprintf(s.Dump, "  table: %+v\n", s.locks.table.Stats())
}

func longest(queue []parking.WaiterInfo) time.Duration {
	d := time.Duration(0)
	for _, w := range queue {
		d = max(d, w.Waited)
	}
	return d
}
