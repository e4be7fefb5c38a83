//go:build sim && !sync2_std

package sync2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
	"github.com/hqsync/hqsync/parking"
)

// A transition of a state word, as its header lists it, with the functions that
// make it.
type transition struct {
	word, name string
	by         string // functions
	takes      func(old, now uint64) bool
}

// headers are the transitions of mutex.go, rwmutex.go, waitgroup.go and do.go.
// Cond has no word; what its Broadcast does to a mutex is T5 and T12 there.
var headers = []transition{
	{"state", "T1", "Mutex.Lock Mutex.lockWithin Mutex.Do", from(0).to(mutexLocked)},
	{"state", "T2", "Mutex.contend Mutex.linger Mutex.TryLock", func(old, now uint64) bool {
		return old&mutexLocked == 0 && now&^mutexParked == mutexLocked && now&old == old
	}},
	{"state", "T4", "Mutex.Unlock Mutex.unlockContended", func(old, now uint64) bool { return old&mutexLocked != 0 && now == old-mutexLocked }},
	{"state", "T5", "Mutex.contend Mutex.announce", from(mutexLocked).to(mutexLocked | mutexParked)},
	{"state", "T6", "Mutex.wake", from(mutexParked).to(0)},
	{"state", "T7", "Mutex.handOff", func(old, now uint64) bool { return old&mutexLocked == 0 && now == old|mutexLocked }},
	{"state", "T9", "Mutex.giveUp", func(old, now uint64) bool { return old&mutexParked == 0 && now == old|mutexParked }},
	{"state", "T10", "Mutex.Unlock", func(old, now uint64) bool { return old&mutexLocked != 0 && now == 0 }},
	{"state", "T11", "Mutex.wakeRaced", from(mutexLocked).to(mutexLocked | mutexParked)},
	{"state", "T15", "Mutex.settle", from(mutexLocked).to(mutexLocked | mutexParked)},

	{"tag", "T12", "Mutex.setTag", func(old, now uint64) bool { return old == 0 && now&^tagNode == 0 }},
	{"tag", "T13", "Mutex.quiet", func(old, now uint64) bool { return old&tagNode != 0 && now == 0 }},
	{"tag", "T14", "Mutex.calm Mutex.quiet Mutex.lockSlow Mutex.lockWoken", func(old, now uint64) bool {
		return now&tagNode == old&tagNode && now&tagNode != 0 && now&tagAwake == 0
	}},
	{"tag", "T3", "Mutex.wake", func(old, now uint64) bool { return old&tagNode != 0 && old&tagAwake == 0 && now == old|tagAwake }},
	{"tag", "T8", "Mutex.rest Mutex.wake", func(old, now uint64) bool { return old&tagAwake != 0 && now == old&^tagAwake }},

	{"rw", "T1", "RWMutex.RLock RWMutex.rLockMore RWMutex.TryRLock RWMutex.waitToRead RWMutex.enterCounted", reader(func(k int64, w bool) bool { return k == 1 && !w })},
	{"rw", "T2", "RWMutex.RLock RWMutex.rLockMore RWMutex.waitToRead RWMutex.enterCounted", reader(func(k int64, w bool) bool { return k == 1 && w })},
	{"rw", "T3", "RWMutex.takeBack", reader(func(k int64, _ bool) bool { return k == -1 })},
	{"rw", "T4", "RWMutex.RUnlock RWMutex.rUnlockMore", reader(func(k int64, _ bool) bool { return k == -1 })},
	{"rw", "T5", "RWMutex.lockOwned RWMutex.tryCounted", func(old, now uint64) bool { return old&rwWriter == 0 && now == old|rwWriter }},
	{"rw", "T6", "RWMutex.release", released(rwCounted)},
	{"rw", "T6, c' = 0", "RWMutex.release", released(0)},
	{"rw", "T7", "RWMutex.admitReaders", reader(func(k int64, _ bool) bool { return k > 0 })},
	{"rw", "T8", "RWMutex.TryLock", from(0).to(rwWriter)},
	{"rw", "T9", "RWMutex.Downgrade", released(rwCounted)},
	{"rw", "T9, c' = 0", "RWMutex.Downgrade", released(0)},
	{"rw", "T10", "RWMutex.grow", func(old, now uint64) bool { return old&(rwWriter|rwCounted) == 0 && now == old|rwCounted }},
	{"P", "C1", "RWMutex.enterCounted", func(old, now uint64) bool { return now == old+1 }},
	{"P", "C2", "RWMutex.enterCounted", func(old, now uint64) bool { return now == old-1 }},
	{"P", "C3", "RWMutex.leaveCounted", func(old, now uint64) bool { return now == old-1 }},

	{"tasks", "T1", "WaitGroup.Add", func(old, now uint64) bool { return uint32(old) == uint32(now) }},
	{"tasks", "T2", "WaitGroup.enter", func(old, now uint64) bool { return old>>32 != 0 && now == old+1 }},
	{"tasks", "T3", "WaitGroup.release", func(old, now uint64) bool { return old>>32 == 0 && uint32(old) != 0 && now == 0 }},
	{"tasks", "T4", "WaitGroup.wait", func(old, now uint64) bool { return uint32(old) != 0 && now == old-1 }},
	{"tasks", "T5", "WaitGroup.release", func(old, now uint64) bool { return old>>32 != 0 && now == old>>32<<32 }},

	{"request", "T1", "askSlot.publish", func(old, now uint64) bool { return old == 0 && isMutex(now) }},
	{"request", "T2", "request.claim", func(old, now uint64) bool { return isMutex(old) && now == at(&claimed) }},
	{"request", "T3", "request.withdraw", func(old, now uint64) bool { return isMutex(old) && now == 0 }},
	{"request", "T4", "request.await", func(old, now uint64) bool { return old == at(&claimed) && now == at(&asleep) }},
	{"request", "T5", "request.conclude", func(old, now uint64) bool { return (old == at(&claimed) || old == at(&asleep)) && now == at(&done) }},
	{"request", "T6", "askSlot.settle", func(old, now uint64) bool { return old == at(&done) && now == 0 }},
}

type from uint64

func (f from) to(want uint64) func(old, now uint64) bool {
	return func(old, now uint64) bool { return old == uint64(f) && now == want }
}

// reader is a transition that changes the count of an RWMutex's word by k, and nothing else.
func reader(takes func(k int64, writer bool) bool) func(old, now uint64) bool {
	return func(old, now uint64) bool {
		o, n := int32(old), int32(now)
		return (o^n)&(rwWriter|rwCounted) == 0 && takes(readers(n)-readers(o), o&rwWriter != 0)
	}
}

// released is the end of a writer's turn. counted is 0 if that switches counters off.
func released(counted int32) func(old, now uint64) bool {
	return func(old, now uint64) bool {
		o, n := int32(old), int32(now)
		off := o&rwCounted != 0 && n&rwCounted == 0
		return o&rwWriter != 0 && n&rwWriter == 0 && n&rwCounted&^o == 0 && off == (counted == 0)
	}
}

func at(m *Mutex) uint64 { return uint64(parking.AddrOf(m)) }

func isMutex(p uint64) bool { return p != 0 && p != at(&claimed) && p != at(&asleep) && p != at(&done) }

// key names a transition made by one of its functions.
func (t transition) key(by string) string { return t.word + " " + t.name + " by " + by }

func listed() *sim.Transitions {
	var keys []string
	for _, t := range headers {
		for _, by := range strings.Fields(t.by) {
			keys = append(keys, t.key(by))
		}
	}
	return sim.NewTransitions(keys...)
}

// seamFunctions write for whoever calls them.
var seamFunctions = []string{"storePlain", "storeBetweenLoads", "bump"}

// writers returns the functions of this package that are writing, innermost
// first; none if the innermost function of all is another package's.
func writers(w sim.Write) (names []string) {
	const here = "github.com/hqsync/hqsync/sync2."
	for _, f := range w.By() {
		name, ours := strings.CutPrefix(f, here)
		if !ours {
			break
		}
		name, _, _ = strings.Cut(name, ".func") // a closure is its function
		name = strings.NewReplacer("(*", "", ")", "").Replace(name)
		if !slices.Contains(seamFunctions, name) {
			names = append(names, name)
		}
	}
	return names
}

// wordOf says which word of the headers was written, if it is one.
func wordOf(w sim.Write, by string) string {
	switch name := w.Object[strings.LastIndex(w.Object, ".")+1:]; {
	case name == "state", name == "tag", name == "rw", name == "tasks":
		return name
	case strings.HasPrefix(name, "P"):
		return "P"
	case name == "" && slices.ContainsFunc(headers, func(t transition) bool {
		return t.word == "request" && slices.Contains(strings.Fields(t.by), by)
	}):
		return "request"
	}
	return ""
}

// sawWrite counts the transition of a write, or objects to it. The program may
// have a watch of its own.
func sawWrite(taken *sim.Transitions, and func(sim.Write) error) func(sim.Write) error {
	return func(w sim.Write) error {
		if and != nil {
			if err := and(w); err != nil {
				return err
			}
		}
		callers := writers(w)
		if len(callers) == 0 {
			return nil
		}
		by := callers[0]
		if by == "RWMutex.release" && slices.Contains(callers, "RWMutex.Downgrade") {
			by = "RWMutex.Downgrade"
		}
		word := wordOf(w, by)
		if word == "" {
			return nil
		}
		for _, t := range headers {
			if t.word == word && slices.Contains(strings.Fields(t.by), by) && t.takes(w.Old, w.New) {
				return taken.Took(t.key(by))
			}
		}
		if w.Old == w.New {
			return nil
		}
		return fmt.Errorf("%s writes %#x over %#x in %s, which no header lists", by, w.New, w.Old, w.Object)
	}
}

// walked are programs that take all transitions between them.
func walked() (programs []sim.Program) {
	add := func(m mode, ps ...sim.Program) {
		for _, p := range ps {
			programs = append(programs, m.on(p))
		}
	}
	for _, m := range append(slices.Clone(modes), patientMode) {
		add(m, mutexProgram("LL", "LL", "L"), mutexProgram("TD", "DL", "LL"), mutexProgram("D", "L", "L", "L"))
		add(m, condProgram(newMutex, "W", "W", "aL"), condProgram(newMutex, "W", "AL", "C", "x"))
	}
	for _, as := range slices.Sorted(maps.Keys(rwSetups)) {
		add(modes[0], rwProgram(as, "re", "rw", "wd"), rwProgram(as, "r", "rq", "wg", "t"), rwProgram(as, "rr", "rr", "gw"))
	}
	add(modes[0], condProgram(newRWMutex, "W", "W", "L", "a"))
	add(modes[0], waitGroupProgram(1, "CWG", "D", "x"), waitGroupProgram(2, "W", "C", "DFDxD"))
	add(fenceMode, doProgram("D", "E", "P"), doProgram("DD", "Dd", "DL", "dW"))
	return programs
}

// Every transition is taken in some schedule of some program, by each of the
// functions that the headers name, and no other is.
func TestModel_TakesEveryTransition(t *testing.T) {
	defer backToReality()
	taken := listed()
	for _, p := range walked() {
		p.Watch, p.AskBy = sawWrite(taken, p.Watch), true
		for _, s := range []sim.Strategy{sim.Uniform(1), sim.PCT(3, 1), sim.Exhaustive(2)} {
			o := sim.Options{Memory: sim.TSO, Strategy: s, Budget: 800, Procs: 2, Nodes: []int{0, 1}}
			if strings.HasSuffix(p.Name, "ordered") {
				o.Memory = sim.SC
			}
			if r := sim.Explore(p, o); r.Failure != nil {
				t.Errorf("%s\n%s", r, r.Failure.Detail())
			}
		}
	}
	t.Log(taken)
	for _, name := range taken.Untaken() {
		t.Errorf("no program takes %s", name)
	}
}

// What no header lists fails a program.
func TestModel_ObjectsToOtherTransitions(t *testing.T) {
	defer backToReality()
	p := modes[0].on(rwProgram("adds", "rr", "r", "ww"))
	p.Watch, p.AskBy = sawWrite(listed(), nil), true
	r := sim.Explore(p, sim.Options{Strategy: sim.Uniform(1), Mutant: "rwmutex: counters switched on under a writer"})
	if r.Failure == nil || !strings.Contains(r.Failure.Message, "which no header lists") {
		t.Errorf("%s", r)
	}
}
