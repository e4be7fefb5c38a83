package torture

import "sync"

// mostTasks is the largest number of tasks that a generation of a WaitGroup has.
const mostTasks = 24

// enlistWaitGroup adds members that each fork tasks and join them, over and over with the same WaitGroup, while others
// wait for the same.
func (s *session) enlistWaitGroup(int) {
	for range (s.Members + 3) / 4 {
		f := &forks{wg: s.locks.waitGroup()}
		s.crew("waitgroup", 1, f.turn)
	}
}

type forks struct {
	wg         waitGroup
	generation uint64
	done       [mostTasks]uint64 // generation, written by the tasks
}

func (f *forks) turn(m *member) {
	tasks := 1 + m.luck.IntN(mostTasks)
	f.generation++
	f.wg.Add(tasks)
	for i := range tasks {
		go func() {
			f.done[i] = f.generation
			f.wg.Done()
		}()
	}
	var others sync.WaitGroup
	for range m.luck.IntN(4) {
		others.Go(func() { f.join(m, tasks, f.wg.Wait) })
	}
	f.join(m, tasks, func() {
		for !m.waitFor(f.wg) {
		}
	})
	// The next generation must not begin before all waiters of this one are through.
	others.Wait()
	m.acquired.Add(uint64(tasks))
}

// join waits and then looks at what the tasks wrote.
func (f *forks) join(m *member, tasks int, wait func()) {
	wait()
	for i, generation := range f.done[:tasks] {
		if generation != f.generation {
			m.s.fail("conservation: member %d's Wait returned before task %d of %d was done", m.id, i, tasks)
		}
	}
}
