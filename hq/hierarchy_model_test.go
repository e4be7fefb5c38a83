//go:build sim && gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// Programs of the model checker for mode HQ: see CONTRIBUTING.md on how to read a
// trace. What a goroutine does in mode Q alone is in model_test.go.

// A crowd is a program: goroutines, each on a P of its own, that use two locks.
type crowd struct {
	name    string
	scripts []string // one for each goroutine: a, b lock and unlock that lock; t tries lock a; x forbids mode HQ of it
	domains []int    // of each goroutine
	begin   string   // HQ: lock a is in mode HQ; queue: whoever comes first to a lock has to queue, in mode Q
	tuning  tuning
	rosters uint32 // 0: enough
	nodes   uint32 // of each P; 0: enough
	options sim.Options
}

// eager is a tuning under which the first head inflates, and cohorts change at
// each hand-over.
var eager = tuning{local: 1, streak: 0, keep: 1, votes: 100, handOvers: -1, crossings: -1, localTime: 1e9, budget: 30_000, patience: 20_000}

// closing is eager, with a deflation whenever the queue is empty.
var closing = func() tuning {
	t := eager
	t.keep, t.votes = 1000, 1
	return t
}()

// fair is eager, with no hand-over inside a cohort while another waits.
var fair = func() tuning {
	t := eager
	t.local = 0
	return t
}()

// A model is the state of a schedule of a crowd.
type model struct {
	crowd   crowd
	locks   [2]*Lock
	inside  [2]int
	entered [2]int
	tried   int       // in vain
	order   []int     // of sections, by P
	before  [2]uint32 // words at the last look
}

func (m *model) setup() {
	m.inside, m.entered, m.tried = [2]int{}, [2]int{}, 0
	m.order = m.order[:0]
	simRosters, simNodes = m.crowd.rosters, m.crowd.nodes
	inForce.Store(&m.crowd.tuning)
	ResetForSim()
	for i := range m.locks {
		m.locks[i] = new(Lock)
		sim.Name(&m.locks[i].word, string(rune('a'+i)), "locked", "pending", "nosteal", "parked", "HQ", "CLOSING", "qonly", "waking")
	}
	a := m.locks[0]
	switch m.crowd.begin {
	case "HQ":
		a.inflate()
	case "queue":
		for i, l := range m.locks {
			if strings.ContainsRune(m.crowd.scripts[0], rune('a'+i)) {
				l.word.Store(nosteal)
			}
		}
	}
	for i, l := range m.locks {
		m.before[i] = l.word.Load()
	}
	for i := range rosters[:simUsed] {
		sim.Name(&rosters[i], fmt.Sprint("roster", i))
		for d := range simDomains {
			sim.Name(&cohorts[d][i].tail, fmt.Sprint("cohort", i, ".", d))
		}
	}
	for p := range len(m.crowd.scripts) {
		for i := range nodesPerP {
			sim.Name(&nodes[p*nodesPerP+i], fmt.Sprint("node", p*nodesPerP+i+1))
		}
	}
}

func (m *model) run(script string) {
	for _, op := range script {
		if op == 'x' {
			m.locks[0].SetHQ(false)
			continue
		}
		i := int(op - 'a')
		if op == 't' {
			if i = 0; !m.locks[i].TryLock() {
				m.tried++
				continue
			}
		} else {
			m.locks[i].Lock()
		}
		sim.MustPinned("the section")
		m.inside[i]++
		sim.Assert(m.inside[i] == 1, "two owners")
		sim.Step("in the section")
		m.entered[i]++
		m.order = append(m.order, sim.CPU())
		m.inside[i]--
		m.locks[i].Unlock()
	}
	sim.MustNotPinned("the end")
}

// check is what must hold after every step; the numbers are those of the package's
// headers.
func (m *model) check() error {
	owners := [simUsed]int{}
	for i, l := range m.locks {
		w := l.word.Load()
		if m.inside[i] != 0 && w&locked == 0 {
			return fmt.Errorf("I1: lock %d has an owner and is not locked", i)
		}
		if err := modeChange(m.before[i], w); err != nil {
			return fmt.Errorf("lock %d: %w", i, err)
		}
		m.before[i] = w
		if w&modeMask != modeQ {
			owners[w>>refShift]++
		}
	}
	for number := uint32(1); number < simUsed; number++ {
		if err := checkRoster(number, owners[number], m.crowd.tuning.local); err != nil {
			return err
		}
	}
	if err := m.checkTails(); err != nil {
		return err
	}
	return m.checkQueues()
}

// modeChange checks that one step may make word before into after, and that after's bits go together.
func modeChange(before, after uint32) error {
	from, to := before&modeMask, after&modeMask
	if from != to && !(from == modeQ && to == modeHQ || from == modeHQ && to == modeClosing || from == modeClosing) {
		return fmt.Errorf("mode went from %#x to %#x", from, to)
	}
	if to != modeQ && from != modeQ && before&refMask != after&refMask {
		return fmt.Errorf("the roster changed from %#x to %#x", before, after)
	}
	if to != modeQ && after&pending != 0 {
		return errors.New("pending outside of mode Q")
	}
	if after&parked != 0 && after&waking != 0 {
		return errors.New("parked and waking")
	}
	return nil
}

func checkRoster(number uint32, owners int, local uint32) error {
	if owners > 1 {
		return fmt.Errorf("R9: roster %d has %d locks", number, owners)
	}
	taken := supply[0].Load()>>(number-1)&1 != 0
	if !taken && (owners > 0 || rosters[number].tail.Load() != 0) {
		return fmt.Errorf("R4: roster %d is in use and in supply", number)
	}
	for d := range simDomains {
		c := &cohorts[d][number]
		if owners == 0 && uint32(c.tail.Load()) != 0 {
			return fmt.Errorf("R4: somebody queues in roster %d, which is no lock's", number)
		}
		if c.passes > max(local, 1) {
			return fmt.Errorf("cohort %d of roster %d made %d hand-overs in a turn", d, number, c.passes)
		}
	}
	return nil
}

// checkTails checks I3 of tails.
func (m *model) checkTails() error {
	var tails []uint32
	for _, l := range m.locks {
		if w := l.word.Load(); w&modeMask == modeQ {
			tails = append(tails, w>>refShift)
		}
	}
	for number := range simUsed {
		tails = append(tails, rosters[number].tail.Load())
		for d := range simDomains {
			tails = append(tails, uint32(cohorts[d][number].tail.Load()))
		}
	}
	for _, ref := range tails {
		if ref != 0 && offQueue(ref) {
			return fmt.Errorf("I3: a tail is node %d, which is in no queue", ref)
		}
	}
	return nil
}

// offQueue reports whether nothing leads to a node, and nobody will look at its
// next any more: its holder still has to free a node that is out.
func offQueue(ref uint32) bool {
	s := node(ref).state.Load()
	return s == free || s == out
}

// checkQueues checks I2 and I3 as far as nodes are linked: no node that is in no
// queue is behind another, chains end, and a chain has one head at most.
func (m *model) checkQueues() error {
	var heads [1 + 8*nodesPerP]int // by the last node of the chain
	used := uint32(len(m.crowd.scripts) * nodesPerP)
	for ref := uint32(1); ref <= used; ref++ {
		if offQueue(ref) {
			continue
		}
		end := ref
		for steps := 0; ; steps++ {
			next := node(end).next.Load()
			if next == 0 || next == left {
				break
			}
			if offQueue(next) {
				return fmt.Errorf("I3: node %d leads to %d, which is in no queue", end, next)
			}
			if end = next; steps > int(used) {
				return fmt.Errorf("the chain from node %d is a ring", ref)
			}
		}
		if node(ref).state.Load() == head && node(ref).next.Load() != left {
			if heads[end]++; heads[end] > 1 {
				return fmt.Errorf("I2: two heads before node %d", end)
			}
		}
	}
	return nil
}

// outcome tells final states apart: in which order sections ran, and what became of the locks.
func (m *model) outcome() string {
	return fmt.Sprint(m.order, m.locks[0].word.Load(), m.locks[1].word.Load())
}

// final is what must hold when all goroutines have ended.
func (m *model) final() error {
	var want [2]int
	forbidden := false
	for _, s := range m.crowd.scripts {
		for _, op := range s {
			switch op {
			case 'x':
				forbidden = true
			case 't':
				want[0]++
			default:
				want[op-'a']++
			}
		}
	}
	want[0] -= m.tried
	var bound uint64
	for i, l := range m.locks {
		w := l.word.Load()
		if m.entered[i] != want[i] {
			return errors.New("an update was lost")
		}
		if w&(locked|pending|nosteal|waking) != 0 || w&modeMask == modeClosing || w&modeMask == modeQ && w&refMask != 0 {
			return fmt.Errorf("word %#x at rest", w)
		}
		if w&modeMask == modeHQ {
			bound |= 1 << (w>>refShift - 1)
			if !quiet(w >> refShift) {
				return errors.New("a queue is not empty at rest")
			}
		}
	}
	if forbidden && m.locks[0].InHQ() {
		return errors.New("R6: in mode HQ, which is forbidden, at rest")
	}
	if s := supply[0].Load(); s != bound {
		return fmt.Errorf("rosters %#x are taken, %#x are in use", s, bound)
	}
	for ref := 1; ref <= len(m.crowd.scripts)*nodesPerP; ref++ {
		if s := node(uint32(ref)).state.Load(); s != free {
			return fmt.Errorf("node %d is in state %d at rest", ref, s)
		}
	}
	return nil
}

// program returns the crowd as a program, to be run with the options.
func (c crowd) program() (sim.Program, sim.Options) {
	if c.rosters == 0 {
		c.rosters = 4
	}
	if c.nodes == 0 {
		c.nodes = nodesPerP
	}
	m := &model{crowd: c}
	p := sim.Program{Name: c.name, Setup: m.setup, Check: m.check, Watch: sawWrite, Final: m.final, Outcome: m.outcome}
	for _, s := range c.scripts {
		p.Threads = append(p.Threads, func() { m.run(s) })
	}
	o := c.options
	o.Domains, o.MaxSteps = c.domains, 2000
	return p, o
}

// noTime is for programs in which nobody's budget ends: a waiter whom everybody
// has forgotten then waits for ever.
const noTime = -1

func backToReality() {
	simRosters, simNodes = maxRosters, nodesPerP
	inForce.Store(nil)
	ResetForSim()
}

// Programs. Those without a strategy are too large to be explored whole.
var (
	twoDomains = crowd{name: "HQ, two domains", scripts: []string{"aa", "aa", "aa"}, domains: []int{0, 0, 1}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
	shortTurns = crowd{name: "HQ, short turns", scripts: []string{"aa", "aa", "aa", "aa"}, domains: []int{0, 0, 0, 1}, begin: "HQ", tuning: fair,
		options: sim.Options{Ticks: noTime}}
	fourInHQ = crowd{name: "HQ, two of each domain", scripts: []string{"aa", "aa", "aa", "aa"}, domains: []int{0, 1, 0, 1}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: noTime}}
	inflation = crowd{name: "inflation during enqueue", scripts: []string{"aa", "aa", "aa"}, domains: []int{0, 1, 0}, begin: "queue", tuning: eager,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
	deflation = crowd{name: "deflation during enqueue", scripts: []string{"aa", "aa", "aa"}, domains: []int{0, 1, 0}, begin: "HQ", tuning: closing,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
	upAndDown = crowd{name: "inflation and deflation", scripts: []string{"aa", "aa", "aa", "a"}, domains: []int{0, 1, 0, 1}, begin: "queue", tuning: closing,
		options: sim.Options{Ticks: noTime}}
	abandon = crowd{name: "abandon", scripts: []string{"aa", "aa", "a", "a"}, domains: []int{0, 0, 1, 1}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: 4}}
	abandonInQ = crowd{name: "abandon in mode Q", scripts: []string{"aa", "aa", "a"}, domains: []int{0, 0, 0}, begin: "queue", tuning: defaultTuning,
		options: sim.Options{Ticks: 4}}
	abandonChanging = crowd{name: "abandon while the mode changes", scripts: []string{"aa", "aa", "a", "a"}, domains: []int{0, 0, 1, 1}, begin: "queue", tuning: closing,
		options: sim.Options{Ticks: 4}}
	fewNodes = crowd{name: "no node for the cohort", scripts: []string{"aa", "aa", "aa"}, domains: []int{0, 0, 1}, begin: "HQ", tuning: closing, nodes: 1,
		options: sim.Options{Ticks: 2}}
	exhaustion = crowd{name: "pool exhaustion", scripts: []string{"ab", "ab", "ba"}, domains: []int{0, 1, 0}, begin: "queue", tuning: eager, rosters: 1,
		options: sim.Options{Ticks: noTime}}
	forbiddingEarly = crowd{name: "mode HQ is forbidden while waiters of mode Q are queued", scripts: []string{"aa", "aa", "xa"}, domains: []int{0, 1, 0}, begin: "queue", tuning: eager,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
	forbidding = crowd{name: "mode HQ is forbidden", scripts: []string{"aa", "aa", "xa"}, domains: []int{0, 1, 0}, begin: "HQ", tuning: eager,
		options: sim.Options{Ticks: noTime, Strategy: sim.Exhaustive(2)}}
)

func TestModelHQ(t *testing.T) {
	defer backToReality()
	for _, c := range []crowd{twoDomains, shortTurns, fourInHQ, inflation, deflation, upAndDown, abandon, abandonInQ, abandonChanging, exhaustion, forbidding, forbiddingEarly, fewNodes} {
		t.Run(c.name, func(t *testing.T) {
			p, o := c.program()
			sim.Cover(t, p, o, testing.Short())
		})
		if c.options.Strategy == nil && !testing.Short() {
			t.Run(c.name+", uniform", func(t *testing.T) { // which meets rare states sooner
				p, o := c.program()
				o.Strategy, o.Budget = sim.Uniform(1), 25_000
				sim.Run(t, p, o)
			})
		}
	}
}

// A checker that has never found anything is not trusted: each fault that is
// seeded in mode HQ is found on the program named here.
var hqMutants = []struct {
	name  string
	crowd crowd
}{
	{"hq: no baton from a predecessor that left", fourInHQ},
	{"hq: skipped node free at once", abandonInQ},
	{"hq: skipped node dropped at once", abandonInQ},
	{"hq: a head abandons", abandon},
	{"hq: tail sought in the word", twoDomains},
	{"hq: newcomers queue while closing", deflation},
	{"hq: roster taken for a tail", inflation},
	{"hq: the last roster is shared", exhaustion},
	{"hq: inflation forgets the queue", inflation},
	{"hq: the lock's queue may be left", forbiddingEarly},
	{"hq: a cohort may be left", deflation},
	{"hq: no new sequence number", deflation},
	{"hq: no second look at the word", deflation},
	{"hq: roster back before the lock has left it", deflation},
	{"hq: no look after CLOSING", forbidding},
	{"hq: drained lock stays forbidden", forbidding},
	{"hq: forbidding leaves it to others", forbidding},
	{"hq: leader keeps the cohort's place", abandon},
	{"hq: empty cohort keeps its place", abandon},
	{"hq: head of an empty cohort just goes", abandon},
	{"hq: nodeless leader stays", fewNodes},
	{"hq: no pass budget", fourInHQ},
	{"hq: a spent turn goes down and up", shortTurns},
}

func TestMutants(t *testing.T) {
	defer backToReality()
	var faults []sim.Fault
	for _, m := range append(slices.Clone(qMutants), hqMutants...) {
		p, o := m.crowd.program()
		o.Budget = 50_000
		if o.Strategy == nil {
			o.Strategy = sim.Uniform(1)
		}
		faults = append(faults, sim.Fault{Mutant: m.name, Program: p, Options: o})
	}
	sim.RunFaults(t, faults)
}
