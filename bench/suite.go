package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hqsync/hqsync/bench/internal/environ"
	"github.com/hqsync/hqsync/bench/internal/harness"
	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
	"github.com/hqsync/hqsync/bench/internal/workload"
	"github.com/hqsync/hqsync/bench/internal/workload/ours"
	"github.com/hqsync/hqsync/bench/internal/workload/peer"
	"github.com/hqsync/hqsync/bench/internal/workload/std"
)

// The peers' names.
const (
	peerChannel   = "channel"
	peerSemaphore = "semaphore"
	peerRBMutex   = "rbmutex"
	peerSharded   = "sharded" // not one lock but many, each with a part of the work: what no single lock can compete with
	peerTAS       = "tas"
	peerTicket    = "ticket"
	peerThunder   = "thunder"
	peerCascade   = "cascade"
	peerHandOff   = "hand-off"
	peerUnlocked  = "unlocked"
)

// implementations are all that can be measured. Again is the very code of Sync: its ratio shows the noise alone.
var implementations = map[string]workload.Set{
	result.Sync:   std.Set,
	result.Sync2:  ours.Set,
	result.Again:  std.Set,
	peerChannel:   peer.Channel,
	peerSemaphore: peer.Semaphore,
	peerRBMutex:   peer.RBMutex,
	peerSharded:   peer.Sharded,
	peerTAS:       peer.TAS,
	peerTicket:    peer.Ticket,
	peerThunder:   peer.Thunder,
	peerCascade:   peer.Cascade,
	peerHandOff:   peer.HandOff,
	peerUnlocked:  peer.Unlocked,
}

// implementation returns the workloads of an arm. What is no name of an implementation is sync2 with other tunables.
func implementation(arm string) workload.Set {
	if set, ok := implementations[arm]; ok {
		return set
	}
	return ours.Set
}

// A tableSpec is a table to measure.
type tableSpec struct {
	name, title, note string
	cells             []cell
	// means, if not empty, asks for the geometric mean over all cells of each measure and has the targets for it.
	means map[result.Measure]*result.Target
}

// A cell is one workload with one set of parameters: it is measured on each implementation in turn.
type cell struct {
	name, label string
	params      map[string]int
	procs       int // GOMAXPROCS; 0: as it is
	timed       bool
	peers       []string
	job         func(workload.Set) harness.Job
	rows        []rowSpec

	// prepare, if not nil, runs before each sample of an implementation, and what it returns after it.
	prepare func(arm string) (restore func())
	// jobs, if not nil, are what is measured instead of job, by the names of the arms. Among them are of and base, which
	// are compared instead of sync2 and sync.
	jobs     map[string]func() harness.Job
	of, base string
	// take, if not nil, takes a sample of its own instead of running a job.
	take func(ctx context.Context, arm string, d time.Duration) (harness.Sample, error)
	// lasts is about how long such a sample takes if that is not up to d.
	lasts time.Duration
	// rounds is the most that are measured; 0: as many as of the others.
	rounds int
}

// A rowSpec is one measure of a cell.
type rowSpec struct {
	measure result.Measure
	target  *result.Target
	against string // instead of package sync
}

// arms returns the implementations to measure.
func (c *cell) arms() []string {
	of, base := c.compared()
	return append([]string{base, of, result.Again}, c.peers...)
}

// compared returns the two arms that the cell's rows compare.
func (c *cell) compared() (of, base string) {
	if c.base == "" {
		return result.Sync2, result.Sync
	}
	return c.of, c.base
}

// jobOf returns the job of an arm.
func (c *cell) jobOf(arm string) harness.Job {
	if c.jobs == nil {
		return c.job(implementation(arm))
	}
	if arm == result.Again {
		arm = c.base
	}
	return c.jobs[arm]()
}

// family returns the name without the parameters.
func (c *cell) family() string {
	family, _, _ := strings.Cut(c.name, "/")
	return family
}

// plan says how the tables are measured.
type plan struct {
	command  string
	rounds   int
	duration time.Duration // of a sample
	timed    time.Duration // of a sample with timed waits
	turn     time.Duration // how long a goroutine runs on while waits are timed
	progress func(done, total time.Duration, label string)
}

// shortest is the shortest sample, good for tests and warming up only.
const shortest = 5 * time.Millisecond

// warmup is the uncounted part before a sample.
func warmup(d time.Duration) time.Duration { return max(5*time.Millisecond, d/10) }

func (p *plan) options(c *cell) harness.Options {
	d := p.duration
	if c.timed {
		d = p.timed
	}
	return harness.Options{Duration: d, Warmup: warmup(d), Timed: c.timed, Turn: p.turn}
}

// between is about what a sample takes beside its span: garbage is collected before it, and while goroutines keep all Ps
// the clock waits for the end of a time slice.
const between = 20 * time.Millisecond

// cost is the time that one round of the cell is planned to take.
func (p *plan) cost(c *cell) time.Duration {
	o := p.options(c)
	return cmp.Or(c.lasts, o.Duration+o.Warmup+between) * time.Duration(len(c.arms()))
}

// roundsOf is how many of the rounds measure the cell.
func (p *plan) roundsOf(c *cell) int {
	if c.rounds == 0 {
		return p.rounds
	}
	return min(c.rounds, p.rounds)
}

// total is the time that all cells are planned to take. What cannot be short is not in the first round either.
func (p *plan) total(specs []tableSpec) (sum time.Duration) {
	for _, spec := range specs {
		for i := range spec.cells {
			c := &spec.cells[i]
			rounds := p.roundsOf(c)
			if c.lasts > 0 {
				rounds++
			}
			sum += p.cost(c) * time.Duration(rounds)
		}
	}
	return sum
}

// series are the samples of one cell by implementation. The slices grow together: a round is in all or in none.
type series map[string][]harness.Sample

// measure runs all cells of all tables in rounds, in each round every cell on every implementation, these in random
// order: slow changes of the machine then reach all alike, and a pair of neighbours has seen the same machine. A first
// round, short and thrown away, pays for page faults and the growth of the runtime's tables.
//
// If the context ends, or a job fails, it returns what it has with the error.
func measure(ctx context.Context, p plan, specs []tableSpec) (*result.Result, error) {
	r := newResult(p.command)
	r.StepNS = harness.StepTime()
	r.Samples, r.SampleNS, r.TimedNS, r.TurnNS = p.rounds, int64(p.duration), int64(p.timed), int64(p.turn)
	measured, err := p.rounded(ctx, specs)
	for i, spec := range specs {
		if t := spec.table(measured[i]); len(t.Rows) > 0 {
			r.Tables = append(r.Tables, t)
		}
	}
	r.Interrupted = errors.Is(err, context.Canceled)
	r.Seconds = time.Since(r.Started).Seconds()
	return r, err
}

// newResult returns the result of a command that begins now.
func newResult(command string) *result.Result {
	return &result.Result{Format: result.Format, Command: command, Started: time.Now(), Environment: environ.Read()}
}

// rounded returns the series of each cell of each table.
func (p *plan) rounded(ctx context.Context, specs []tableSpec) ([][]series, error) {
	var done time.Duration
	total := p.total(specs)
	measured := make([][]series, len(specs))
	for i, spec := range specs {
		for range spec.cells {
			measured[i] = append(measured[i], series{})
		}
	}
	rig := new(harness.Rig)
	for round := -1; round < p.rounds; round++ {
		for i, spec := range specs {
			for j := range spec.cells {
				c := &spec.cells[j]
				if round >= p.roundsOf(c) {
					continue
				}
				if p.progress != nil {
					p.progress(done, total, c.name)
				}
				o := p.options(c)
				if round < 0 {
					o.Duration, o.Warmup = shortest, time.Millisecond
				}
				samples, err := c.round(ctx, rig, o)
				if err != nil {
					return measured, err
				}
				if round >= 0 || c.lasts > 0 {
					done += p.cost(c)
				}
				if round >= 0 {
					measured[i][j].add(samples)
				}
			}
		}
	}
	if p.progress != nil {
		p.progress(total, total, "")
	}
	return measured, nil
}

// round measures every implementation once.
func (c *cell) round(ctx context.Context, rig *harness.Rig, o harness.Options) (map[string]harness.Sample, error) {
	arms := c.arms()
	rand.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
	samples := map[string]harness.Sample{}
	defer setProcs(c.procs)()
	for _, arm := range arms {
		s, err := c.sample(ctx, rig, arm, o)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", c.name, arm, err)
		}
		samples[arm] = s
	}
	return samples, nil
}

// attempts is how often a sample is tried in which nothing ended: on a busy machine the process may have been off the
// CPU all the time. Each attempt is twice as long. A lock that lost a wake-up is found by the rig.
const attempts = 9

func (c *cell) sample(ctx context.Context, rig *harness.Rig, arm string, o harness.Options) (harness.Sample, error) {
	if c.prepare != nil {
		defer c.prepare(arm)()
	}
	if c.take != nil {
		return c.take(ctx, arm, o.Duration)
	}
	for range attempts {
		s, err := rig.Run(ctx, c.jobOf(arm), o)
		if err != nil || s.Ops > 0 && (!o.Timed || s.Waits.Count > 0) {
			return s, err
		}
		o.Duration *= 2
	}
	return harness.Sample{}, fmt.Errorf("nothing ended within %v, in the last of %d attempts; measure longer with -d", o.Duration/2, attempts)
}

// setProcs sets GOMAXPROCS, unless procs is 0, and returns how to set it back. Setting it stops the world, which must
// not happen for nothing.
func setProcs(procs int) (restore func()) {
	if before := runtime.GOMAXPROCS(0); procs > 0 && procs != before {
		runtime.GOMAXPROCS(procs)
		return func() { runtime.GOMAXPROCS(before) }
	}
	return func() {}
}

func (s series) add(samples map[string]harness.Sample) {
	for arm, sample := range samples {
		s[arm] = append(s[arm], sample)
	}
}

// table evaluates the series of a table's cells; cells without a complete round are left out.
func (t *tableSpec) table(measured []series) result.Table {
	out := result.Table{Name: t.name, Title: t.title, Note: t.note}
	for i, c := range t.cells {
		if len(measured[i]) == 0 {
			continue
		}
		for _, peer := range c.peers {
			if !slices.Contains(out.Peers, peer) {
				out.Peers = append(out.Peers, peer)
			}
		}
		for _, spec := range c.rows {
			out.Rows = append(out.Rows, c.row(spec, measured[i]))
		}
	}
	if len(t.means) > 0 {
		out.Rows = t.withMeans(out.Rows)
	}
	return out
}

// withMeans sorts the rows by measure and adds the geometric mean of each.
func (t *tableSpec) withMeans(rows []result.Row) []result.Row {
	var out []result.Row
	for len(rows) > 0 {
		measure := rows[0].Measure
		var same, rest []result.Row
		for _, row := range rows {
			if row.Measure == measure {
				same = append(same, row)
			} else {
				rest = append(rest, row)
			}
		}
		target := t.means[measure]
		if len(same) < len(t.cells) {
			target = nil // of a part says nothing about the whole
		}
		out = append(out, same...)
		out = append(out, result.Mean(same, fmt.Sprintf("geometric mean of %d", len(same)), target))
		rows = rest
	}
	return out
}

func (c *cell) row(spec rowSpec, measured series) result.Row {
	of, base := c.compared()
	row := result.Row{
		Name: c.name, Label: c.label, Measure: spec.measure, Params: c.params, Target: spec.target,
		Of: of, Against: base, Base: c.base, Samples: map[string][]float64{},
	}
	if spec.against != "" {
		row.Against = spec.against
		row.Label += ", against " + spec.against
	}
	for arm, samples := range measured {
		for _, s := range samples {
			row.Samples[arm] = append(row.Samples[arm], value(spec.measure, s))
		}
	}
	if c.take == nil {
		row.Extra = extras(measured, c.timed)
	}
	row.Evaluate()
	return row
}

// value returns what the sample says.
func value(m result.Measure, s harness.Sample) float64 {
	if v, ok := s.Values[string(m)]; ok {
		return v
	}
	switch m {
	case result.P50:
		return float64(s.Waits.P50)
	case result.P99:
		return float64(s.Waits.P99)
	case result.WaitP999, result.P999:
		return float64(s.Waits.P999)
	case result.WaitMax:
		return float64(s.Waits.Max)
	}
	return float64(s.Busy) / float64(s.Ops)
}

// extras returns medians that stand beside the measure.
func extras(measured series, timed bool) map[string]map[string]float64 {
	kinds := map[string]func(harness.Sample) float64{
		"p50 wait ns": func(s harness.Sample) float64 { return float64(s.Waits.P50) },
		"p99 wait ns": func(s harness.Sample) float64 { return float64(s.Waits.P99) },
	}
	if !timed {
		kinds = map[string]func(harness.Sample) float64{
			"cpu ns":   func(s harness.Sample) float64 { return float64(s.CPU) / float64(s.Ops) },
			"jain":     func(s harness.Sample) float64 { return stats.Jain(s.Counts) },
			"top half": func(s harness.Sample) float64 { return stats.TopHalf(s.Counts) },
		}
	}
	found := map[string]map[string]float64{}
	for kind, of := range kinds {
		found[kind] = map[string]float64{}
		for arm, samples := range measured {
			var values []float64
			for _, s := range samples {
				values = append(values, of(s))
			}
			found[kind][arm] = stats.Median(values).Median
		}
	}
	return found
}

// selectCells keeps the cells whose names match the pattern. The mean of a part of a table is not judged.
func selectCells(specs []tableSpec, pattern *regexp.Regexp) []tableSpec {
	var kept []tableSpec
	for _, spec := range specs {
		var cells []cell
		for _, c := range spec.cells {
			if pattern.MatchString(c.name) {
				cells = append(cells, c)
			}
		}
		if len(cells) < len(spec.cells) {
			for m := range spec.means {
				spec.means[m] = nil
			}
		}
		if spec.cells = cells; len(cells) > 0 {
			kept = append(kept, spec)
		}
	}
	return kept
}
