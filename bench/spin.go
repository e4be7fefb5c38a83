package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/locks"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
	"github.com/hqsync/hqsync/topology"
)

type spinCmd struct {
	Locks []string `placeholder:"NAME" help:"Reference locks beside hq, ttas and mcs. Default: all."`
}

func (c *spinCmd) Help() string {
	return `Measures hq.Lock, which guards a bucket of the parking table, beside the spin locks of the literature: alone, on two Ps, and
with 16 threads for each CPU, pinned to a P each (the operating system then takes the CPU away from holders and waiters) or
not (then Go's scheduler does). Then a single bucket under park and unpark, for how long spinning goroutines delay a
stop-the-world, and for how long a wait keeps a P, beside a loop that waits for nothing, which tells what of that is the
machine's.

Example: go run ./bench spin -locks ticket,clh -check

Times are ns per section of all goroutines together, medians. "kept" is the throughput that is left of that on two Ps when
there are 16 pinned threads per CPU: 0.50x and more means that the lock does not mind losing its CPU; locks that hand over
in a fixed order drop to a few per cent. Nothing here shows what domains are good for: see numasim for that.`
}

// overcommit is how many threads there are for each CPU where there are too many.
const overcommit = 16

// The locks that have targets, besides hq itself.
const (
	spinHQ   = "hq"
	spinTTAS = "ttas"
	spinMCS  = "mcs"
)

// An hqLock is an hq.Lock as package locks has them. Its callers are pinned.
type hqLock struct {
	lock hq.Lock
	_    harness.Pad
}

func (l *hqLock) Lock(int)   { l.lock.LockPinned() }
func (l *hqLock) Unlock(int) { l.lock.UnlockPinned() }

// A pinningLock pins its callers itself.
type pinningLock struct{ hqLock }

func (l *pinningLock) Lock(int)   { l.lock.Lock() }
func (l *pinningLock) Unlock(int) { l.lock.Unlock() }

// A spinScene is a way to use a lock.
type spinScene struct {
	name    string
	threads int
	procs   int // GOMAXPROCS; 0: as it is
	pinned  bool
	work    workPair
}

func spinScenes() []spinScene {
	cpus := runtime.NumCPU()
	many := overcommit * cpus
	return []spinScene{
		{"alone", 1, 0, true, workPair{0, 0}},
		{"2 Ps", 2, 2, true, workPair{20, 20}},
		{"16x pinned", many, many, true, workPair{20, 20}},
		{"16x not pinned", many, cpus, false, workPair{20, 20}},
	}
}

const (
	sceneAlone = iota
	sceneTwo
	scenePinned
	sceneLoose
)

// newSpinLock returns an unlocked lock for the scene.
func newSpinLock(name string, s spinScene) locks.Lock {
	if name == spinHQ && s.pinned {
		return new(hqLock)
	}
	if name == spinHQ {
		return new(pinningLock)
	}
	l, err := locks.New(name, spinPlaces(s.threads))
	if err != nil {
		panic(err) // the names have been checked
	}
	return l
}

// spinPlaces spreads threads over the machine's domains: those that share one are neighbours.
func spinPlaces(threads int) []locks.Place {
	t, _ := topology.Get() // what was wrong with the machine's description is for bench topology to say
	n := t.NumDomains()
	places := make([]locks.Place, threads)
	for i := range places {
		places[i] = locks.Place{Domain: i * n / threads, Socket: max(0, t.Domain(i*n/threads).Node)}
	}
	return places
}

// aloneBatch is how many sections of a lone goroutine share the cost of a pin, which is not the lock's.
const aloneBatch = 64

// batch locks and unlocks aloneBatch times. The two locks that are compared closely are called as their users call them,
// so that what inlines does; an interface would hide it.
func batch(l locks.Lock) {
	switch l := l.(type) {
	case *hqLock:
		for range aloneBatch {
			l.lock.LockPinned()
			l.lock.UnlockPinned()
		}
	case *locks.TTAS:
		for range aloneBatch {
			l.Lock(0)
			l.Unlock(0)
		}
	default:
		for range aloneBatch {
			l.Lock(0)
			l.Unlock(0)
		}
	}
}

// aloneJob makes the job of a lone goroutine.
func aloneJob(l locks.Lock) harness.Job {
	return harness.Job{Workers: 1, Loop: func(_ int, m *harness.Meter) (t harness.Tally) {
		for phase := m.Phase(); phase != harness.Stopped; phase = m.Phase() {
			rt.Pin()
			batch(l)
			rt.Unpin()
			t.Ops += uint64(phase) * aloneBatch
		}
		return t
	}}
}

// turnTicks is the time after which a goroutine lets others have its P, in cycles of the profiles' clock, about a
// millisecond. The runtime cannot take it away from one that is pinned nearly always.
const turnTicks = 2_000_000

// spinJob makes the job of a scene.
func spinJob(l locks.Lock, s spinScene) harness.Job {
	if s.threads == 1 {
		return aloneJob(l)
	}
	return harness.Job{Workers: s.threads, Loop: func(id int, m *harness.Meter) harness.Tally {
		t := harness.Tally{Sink: harness.Seed(id)}
		turn := rt.Cputicks()
		for phase := m.Phase(); phase != harness.Stopped; phase = m.Phase() {
			if now := rt.Cputicks(); now-turn > turnTicks {
				runtime.Gosched()
				turn = now
			}
			if s.pinned {
				rt.Pin()
			}
			l.Lock(id)
			t.Sink = harness.Steps(t.Sink, s.work.in)
			l.Unlock(id)
			if s.pinned {
				rt.Unpin()
			}
			t.Sink = harness.Steps(t.Sink, s.work.out)
			t.Ops += uint64(phase)
		}
		return t
	}}
}

// A spinRun is the measurement.
type spinRun struct {
	plan   plan
	rig    harness.Rig
	names  []string
	scenes []spinScene
	times  map[string][][]float64 // ns per section, by lock and scene
	tops   map[string]float64     // share of the luckier half, of the scene 16x pinned
	pairs  [2][]float64           // ns per park and unpark, on as many Ps as CPUs and on 16 times as many
	stops  [2][]pauses            // times of stopping the world, by round, without and with spinning goroutines
	bare   time.Duration          // the longest of waits for nothing
}

// canPin returns an error if this build has nothing to compare.
func canPin() error {
	if !rt.Pinnable {
		return errors.New("this build cannot pin goroutines, and its hq.Lock is a sync.Mutex")
	}
	return nil
}

func (c *spinCmd) Run(b *bench) error {
	p, err := b.plan("spin")
	if err != nil {
		return err
	}
	names, err := c.names()
	if err != nil {
		return err
	}
	if err := canPin(); err != nil {
		return usagef("spin: %w", err)
	}
	out, err := newOutput(b.Out, "spin", b.JSON)
	if err != nil {
		return err
	}
	hq.Load()
	run := &spinRun{plan: p, names: names, scenes: spinScenes(), times: map[string][][]float64{}, tops: map[string]float64{}}
	for _, name := range names {
		run.times[name] = make([][]float64, len(run.scenes))
	}
	if !b.announce(run.cost(), ", and as long again where a lock collapses") {
		return nil
	}
	ctx, stop := untilInterrupt()
	defer stop()
	r := newResult("spin")
	r.StepNS = harness.StepTime()
	r.Samples, r.SampleNS = p.rounds, int64(p.duration)
	failure := run.measure(ctx)
	r.Interrupted = errors.Is(failure, context.Canceled)
	r.Seconds = time.Since(r.Started).Seconds()
	missed := 0
	switch {
	case r.Interrupted:
		r.Sheets = []result.Sheet{run.table()}
	case failure == nil:
		var targets result.Sheet
		targets, missed = run.targets()
		r.Sheets = []result.Sheet{run.table(), targets}
	}
	if err := b.publish(r, out, failure); err != nil {
		return err
	}
	if b.Check && missed > 0 {
		return errMissed
	}
	return nil
}

// names returns the locks to measure.
func (c *spinCmd) names() ([]string, error) {
	names := []string{spinHQ, spinTTAS, spinMCS}
	wanted := c.Locks
	if wanted == nil {
		for _, k := range locks.Kinds {
			wanted = append(wanted, k.Name)
		}
	}
	for _, name := range wanted {
		if _, err := locks.New(name, spinPlaces(1)); err != nil && name != spinHQ {
			return nil, usagef("-locks: %w", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// cost is the time that it is planned to take, without the end of samples in which threads wait for each other.
func (r *spinRun) cost() time.Duration {
	samples := r.plan.rounds * (len(r.pairs) + stopSamples*len(r.stops) + 1)
	for round := range r.plan.rounds {
		for _, name := range r.names {
			for i := range r.scenes {
				if r.sampled(name, i, round) {
					samples++
				}
			}
		}
	}
	return time.Duration(samples) * (r.plan.duration + warmup(r.plan.duration))
}

// sampled reports whether a scene is part of a round. Where there are too many threads a lock that hands over in a fixed
// order needs seconds until all of them have had their turn and can stop: what has no target is measured once.
func (r *spinRun) sampled(name string, scene, round int) bool {
	targeted := name == spinHQ || name == spinTTAS || name == spinMCS
	return round == 0 || scene < scenePinned || scene == scenePinned && targeted && round < stats.MinSamples
}

// measure takes all samples in rounds, in each of them in random order: see measure of suite.go.
func (r *spinRun) measure(ctx context.Context) error {
	for round := range r.plan.rounds {
		var tasks []func() error
		for _, name := range r.names {
			for i := range r.scenes {
				if r.sampled(name, i, round) {
					tasks = append(tasks, func() error { return r.section(ctx, name, i) })
				}
			}
		}
		for i := range r.pairs {
			tasks = append(tasks, func() error { return r.hammer(ctx, i) })
		}
		tasks = append(tasks, func() error { return r.stopping(ctx) }, func() error { return r.waiting(ctx) })
		rand.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		for _, task := range tasks {
			if err := task(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample runs a job and returns the ns per operation. A lock that got nothing done is charged the whole span.
func (r *spinRun) sample(ctx context.Context, job harness.Job, procs int) (float64, harness.Sample, error) {
	defer setProcs(procs)()
	s, err := r.rig.Run(ctx, job, harness.Options{Duration: r.plan.duration, Warmup: warmup(r.plan.duration)})
	return float64(s.Span) / float64(max(1, s.Ops)), s, err
}

func (r *spinRun) section(ctx context.Context, name string, scene int) error {
	s := r.scenes[scene]
	var ns float64
	var sample harness.Sample
	for try := 0; sample.Ops == 0 && try < attempts; try++ { // the process may have been off its CPU all the time
		var err error
		if ns, sample, err = r.sample(ctx, spinJob(newSpinLock(name, s), s), s.procs); err != nil {
			return fmt.Errorf("%s, %s: %w", name, s.name, err)
		}
		if scene >= scenePinned {
			break // it may also have collapsed
		}
	}
	r.times[name][scene] = append(r.times[name][scene], ns)
	if scene == scenePinned {
		r.tops[name] = stats.TopHalf(sample.Counts)
	}
	return nil
}

// hammer measures goroutines that park and unpark each other in pairs, all in the two buckets of a table.
func (r *spinRun) hammer(ctx context.Context, which int) error {
	procs := runtime.NumCPU()
	if which == 1 {
		procs *= overcommit
	}
	job, err := pairsJob(2 * overcommit * runtime.NumCPU())
	if err != nil {
		return err
	}
	ns, _, err := r.sample(ctx, job, procs)
	if err != nil {
		return fmt.Errorf("park and unpark: %w", err)
	}
	r.pairs[which] = append(r.pairs[which], ns)
	return nil
}

// pairsJob makes a job of so many goroutines, an even number: each parks until its partner unparks it. The even one
// says when it is over, by a turn that its partner does not answer.
func pairsJob(workers int) (harness.Job, error) {
	table := new(parking.Table)
	if err := table.SetSlots(2, 0); err != nil {
		return harness.Job{}, err
	}
	turns := make([]struct {
		turn atomic.Uint32 // number of the one whose turn it is; over
		_    harness.Pad
	}, workers/2)
	const over = 2
	loop := func(id int, m *harness.Meter) harness.Tally {
		word, me := &turns[id/2].turn, uint32(id%2)
		key := parking.Key{Addr: parking.AddrOf(word)}
		t := harness.Tally{}
		for {
			for turn := word.Load(); turn != me; turn = word.Load() {
				if turn == over {
					return t
				}
				table.Park(key, func() bool { return word.Load() == turn }, nil, nil, &parking.Options{})
			}
			phase := m.Phase()
			next := 1 - me
			if phase == harness.Stopped {
				next = over
			}
			word.Store(next)
			table.UnparkAll(key, nil)
			if next == over {
				return t
			}
			t.Ops += uint64(phase)
		}
	}
	return harness.Job{Workers: workers, Loop: loop}, nil
}

// The world is stopped under two kinds of goroutines, for so many samples' time each in a round, and by turns of a slice,
// of which a sample is so many.
const (
	stopSamples = 10
	stopTurns   = 6
)

// stopping measures how long stopping the world takes while goroutines spin for a lock, and while they do the same work
// without one: by turns, so that both meet the same neighbours.
func (r *spinRun) stopping(ctx context.Context) error {
	var round [2]pauses
	for range stopSamples * stopTurns {
		for i, locked := range []bool{false, true} {
			before := stoppingTimes()
			collect(ctx, locked, r.plan.duration/stopTurns)
			round[i].add(before, stoppingTimes())
		}
	}
	for i, p := range round {
		r.stops[i] = append(r.stops[i], p)
	}
	return ctx.Err()
}

// collect runs the garbage collector all the time while twice as many goroutines as Ps work, and lock if locked is set.
func collect(ctx context.Context, locked bool, d time.Duration) {
	var stop atomic.Bool
	var l hq.Lock
	workers := 2 * runtime.GOMAXPROCS(0)
	done := make(chan uint64, workers)
	for id := range workers {
		go func() {
			x := harness.Seed(id)
			turn := rt.Cputicks()
			for !stop.Load() {
				if now := rt.Cputicks(); now-turn > turnTicks/40 {
					runtime.Gosched() // so that many cycles of the collector fit into a sample
					turn = now
				}
				if locked {
					l.Lock()
				}
				x = harness.Steps(x, 200)
				if locked {
					l.Unlock()
				}
				x = harness.Steps(x, 20)
			}
			done <- x
		}()
	}
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		runtime.GC()
	}
	stop.Store(true)
	for range workers {
		<-done
	}
}

// stoppingTimes reads the runtime's histogram of the times from the decision to stop the world until it stood.
func stoppingTimes() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// pauses is a histogram of them: how many took at most so many seconds, by bucket.
type pauses struct {
	counts []uint64
	most   []float64
	total  uint64
}

// add adds what came between two readings.
func (p *pauses) add(before, after *metrics.Float64Histogram) {
	if p.counts == nil {
		p.counts, p.most = make([]uint64, len(after.Counts)), after.Buckets[1:]
	}
	for i, n := range after.Counts {
		p.counts[i] += n - before.Counts[i]
		p.total += n - before.Counts[i]
	}
}

// merge adds what another has counted.
func (p *pauses) merge(o *pauses) {
	if p.counts == nil {
		p.counts, p.most = make([]uint64, len(o.counts)), o.most
	}
	for i, n := range o.counts {
		p.counts[i] += n
	}
	p.total += o.total
}

// longer estimates by how many us the 99th percentile of all that with has counted is above that of without, whose
// rounds were measured side by side. The interval is of the differences that come out if rounds are drawn at random, with
// repetition: a percentile so far out has no interval of its own from the few cycles of a round.
func longer(without, with []pauses) stats.Estimate {
	const draws = 2000
	n := len(with)
	difference := func(choose func(i int) int) float64 {
		var a, b pauses
		for i := range n {
			k := choose(i)
			a.merge(&without[k])
			b.merge(&with[k])
		}
		return b.p99() - a.p99()
	}
	e := stats.Estimate{Median: difference(func(i int) int { return i }), N: n}
	if !e.Known() {
		return e
	}
	luck := rand.New(rand.NewPCG(1, uint64(n)))
	drawn := make([]float64, draws)
	for i := range drawn {
		drawn[i] = difference(func(int) int { return luck.IntN(n) })
	}
	slices.Sort(drawn)
	const tail = int(draws * (1 - stats.Confidence) / 2)
	e.Lo, e.Hi = drawn[tail], drawn[draws-1-tail]
	return e
}

// pooled is all that was counted in the rounds.
func pooled(rounds []pauses) (all pauses) {
	for i := range rounds {
		all.merge(&rounds[i])
	}
	return all
}

// p99 estimates the 99th percentile, in us: where it lies in its bucket, were that evenly filled. Where it lies tells more
// than a bound, since a bucket of long times is wider than the target.
func (p *pauses) p99() float64 {
	rank := 0.99 * float64(p.total)
	least, sum := 0.0, 0.0
	for i, n := range p.counts {
		most := p.most[i]
		if math.IsInf(most, 1) {
			most = least
		}
		if sum+float64(n) >= rank && n > 0 {
			return 1e6 * (least + (most-least)*(rank-sum)/float64(n))
		}
		sum += float64(n)
		least = most
	}
	return 0
}

// waiting measures waits for nothing on all CPUs: what makes them longer than the budget is not what a lock does.
func (r *spinRun) waiting(ctx context.Context) error {
	cpus := runtime.NumCPU()
	defer setProcs(cpus)()
	longest := make(chan time.Duration, cpus)
	for range cpus {
		go func() {
			most := time.Duration(0)
			for end := time.Now().Add(r.plan.duration); time.Now().Before(end) && ctx.Err() == nil; runtime.Gosched() {
				most = max(most, bareWait(hq.CurrentTunables().Budget))
			}
			longest <- most
		}()
	}
	for range cpus {
		r.bare = max(r.bare, <-longest)
	}
	return ctx.Err()
}

// How a wait of hq looks at the clock, and what it takes for time off the CPU: see hq.Stats.
const (
	pausesPerLook = 32
	offCPU        = 50 * time.Microsecond
)

// bareWait keeps the P for the budget as a wait for an hq.Lock does, without one, and returns for how long by the measure
// of hq.Stats.LongestPinned.
func bareWait(budget time.Duration) time.Duration {
	rt.Pin()
	defer rt.Unpin()
	var stolen time.Duration
	begin := rt.Nanotime()
	last := begin
	for last <= begin+int64(budget) {
		asm.Pause(pausesPerLook)
		now := rt.Nanotime()
		if gap := time.Duration(now - last); gap > offCPU {
			stolen += gap
		}
		last = now
	}
	return time.Duration(last-begin) - stolen
}

// table is what was measured of the locks.
func (r *spinRun) table() result.Sheet {
	sheet := result.Sheet{
		Name: "spin", Title: "Spin locks on real CPUs", Note: fmt.Sprintf("ns per section; 16x: %d threads", r.scenes[scenePinned].threads),
		Columns: []string{"lock"},
	}
	for _, s := range r.scenes {
		sheet.Columns = append(sheet.Columns, s.name)
	}
	sheet.Columns = append(sheet.Columns, "kept", "top half")
	for _, name := range r.names {
		cells := []string{name}
		for i := range r.scenes {
			cells = append(cells, median(r.times[name][i], "%.1f"))
		}
		kept := stats.Ratios(r.times[name][sceneTwo], r.times[name][scenePinned])
		top := ""
		if share, known := r.tops[name]; known {
			top = fmt.Sprintf("%.2f", share)
		}
		sheet.Rows = append(sheet.Rows, append(cells, median(kept, "%.3fx"), top))
	}
	return sheet
}

// median prints the median of the samples, if there are any.
func median(samples []float64, format string) string {
	if len(samples) == 0 {
		return ""
	}
	return fmt.Sprintf(format, stats.Median(samples).Median)
}

// A spinTarget is a row of the second sheet: an estimate and its bound, an upper one unless atLeast.
type spinTarget struct {
	name, unit string
	value      stats.Estimate
	bound      float64 // 0: none
	atLeast    bool
}

// targets compares with what the lock must achieve, and counts what was missed.
func (r *spinRun) targets() (sheet result.Sheet, missed int) {
	ratio := func(of, against []float64) stats.Estimate { return stats.Median(stats.Ratios(of, against)) }
	ours, ttas, mcs := r.times[spinHQ], r.times[spinTTAS], r.times[spinMCS]
	without, with := pooled(r.stops[0]), pooled(r.stops[1])
	longest := hq.ReadStats()
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	once := func(d time.Duration) stats.Estimate { return stats.Estimate{Median: us(d), N: 1} }
	sheet = result.Sheet{
		Name: "spin-targets", Title: "hq.Lock against its targets", Note: "medians over the rounds, with 95 % intervals; the last four are of all rounds together",
		Columns: []string{"", "value", "interval", "target", "verdict"},
	}
	for _, t := range []spinTarget{
		{"alone, time against ttas that unlocks by atomic.Store", "x", ratio(ours[sceneAlone], ttas[sceneAlone]), 1.05, false},
		{"2 Ps, throughput against ttas", "x", ratio(ttas[sceneTwo], ours[sceneTwo]), 0.95, true},
		{"16x pinned, throughput against its own on 2 Ps", "x", ratio(ours[sceneTwo], ours[scenePinned]), 0.5, true},
		{"the same of mcs, which collapses", "x", ratio(mcs[sceneTwo], mcs[scenePinned]), 0.25, false},
		{"park and unpark in two buckets, 16x Ps against 1x, throughput", "x", ratio(r.pairs[0], r.pairs[1]), 0, false},
		{fmt.Sprintf("p99 of stopping the world %d times, more with spinning goroutines than without (%.0f us, %d times)",
			with.total, without.p99(), without.total), " us", longer(r.stops[0], r.stops[1]), 100, false},
		{"longest pinned wait, without gaps above 50 us between looks at the clock", " us", once(longest.LongestPinned), 40, false},
		{"the same of pinned loops of a wait's length that wait for nothing", " us", once(r.bare), 0, false},
		{"longest pinned wait, without gaps above 10 us, which no work of its own takes", " us", once(longest.LongestSpun), 40, false},
	} {
		verdict := t.verdict()
		if verdict == result.Missed {
			missed++
		}
		sheet.Rows = append(sheet.Rows, t.cells(verdict))
	}
	return sheet, missed
}

func (t *spinTarget) verdict() result.Verdict {
	reached := func(x float64) bool {
		if t.atLeast {
			return x >= t.bound
		}
		return x <= t.bound
	}
	switch {
	case t.bound == 0:
		return ""
	case reached(t.value.Median):
		return result.Met
	case t.value.Known() && (reached(t.value.Lo) || reached(t.value.Hi)):
		return result.Noise
	}
	return result.Missed
}

func (t *spinTarget) cells(verdict result.Verdict) []string {
	interval, target := "", ""
	if t.value.Known() {
		interval = fmt.Sprintf("%.2f to %.2f", t.value.Lo, t.value.Hi)
	}
	if t.bound != 0 {
		sign := "<="
		if t.atLeast {
			sign = ">="
		}
		target = fmt.Sprintf("%s %.2f%s", sign, t.bound, t.unit)
	}
	return []string{t.name, fmt.Sprintf("%.2f%s", t.value.Median, t.unit), interval, target, string(verdict)}
}
