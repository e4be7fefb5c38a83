//go:build sim

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/internal/numasim"
)

type numasimCmd struct {
	Spin numasimSpinCmd `cmd:"" name:"spin" default:"withargs" help:"Spin locks under locktorture's loop. Runs if neither is named."`
	Hash numasimHashCmd `cmd:"" name:"hash" help:"Failing waits in the table of the kernel's futexes."`
}

func (c *numasimCmd) Help() string {
	return `Runs the locks of this module on machines that are not here: in a model of their caches, not in real time. What it shows is
how costs follow from distances and from how many cache lines change hands, beside what others have measured.

Example: go run -tags sim ./bench numasim -quick

A gain of 150 % means 2.5 times as many acquisitions in the same simulated time as qspinlock. "published" is what the
authors of the hierarchical spin lock measured; the deviation from it is what the model gets wrong.`
}

type numasimSpinCmd struct {
	Preset  []string `placeholder:"NAME" help:"Machines, such as epyc9654-nps12 or kunpeng920. Default all."`
	Locks   []string `placeholder:"NAME" help:"Locks, such as cna or mcs, beside qspinlock; \"all\" for all. Default hqkernel and hq."`
	Threads []int    `short:"n" placeholder:"N" help:"Numbers of threads. Default those of the published tables."`
}

func (c *numasimSpinCmd) Help() string {
	return `Every lock in locktorture's loop: one lock, no work outside, three lines of data inside. Per machine, number of threads and
lock: simulated ns per acquisition, gain over qspinlock, fairness (the share of the luckier half of the threads, and
max/(max+min); published figures may be either), and how many hand-overs stayed within a domain. hq is looked at with up to
128 threads, of which most sleep.

Example: go run -tags sim ./bench numasim -preset epyc9654-nps12,epyc9654-nps1-llc

Example: go run -tags sim ./bench numasim -preset haswell4 -locks tas,mcs,cna -n 1,8,72

A gain of 150 % means 2.5 times as many acquisitions in the same time. Of the common flags -quick, -json and -out apply.`
}

type numasimHashCmd struct{}

func (c *numasimHashCmd) Help() string {
	return `Waits that fail after a visit to their bucket, as perf bench futex hash makes them: tables of 256 and 20480 buckets, packed
and on cache lines of their own, 2 to 131072 slots, and the ways to find a table that can be replaced; each beside the
figure that was published for it.

Example: go run -tags sim ./bench numasim hash

Figures are waits per second of each thread. "off by" +10 % means that the model is a tenth too fast; one cell of each
machine is fitted, which the note names. Of the common flags -quick, -json and -out apply.`
}

func (c *numasimHashCmd) Run(b *bench) error {
	return b.modelled("numasim-hash", func(ctx context.Context) ([]result.Sheet, error) {
		bar := newProgress(b.stderr)
		defer bar.clear()
		var sheets []result.Sheet
		cells := numasim.HashCells(b.Quick)
		for i, cell := range cells {
			if ctx.Err() != nil {
				break
			}
			rate, err := cell.Rate()
			if err != nil {
				return sheets, err
			}
			if n := len(sheets); n == 0 || sheets[n-1].Title != "Modelled: "+cell.Table {
				sheets = append(sheets, hashSheet(cell, n))
			}
			s := &sheets[len(sheets)-1]
			s.Rows = append(s.Rows, []string{cell.Row, cell.Column, fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", cell.Published),
				fmt.Sprintf("%+.0f %%", 100*(rate/cell.Published-1))})
			addPoint(&s.Plots[0], cell, rate)
			bar.show(time.Duration(i+1), time.Duration(len(cells)), cell.Row)
		}
		return sheets, nil
	})
}

func hashSheet(cell numasim.HashCell, n int) result.Sheet {
	return result.Sheet{
		Name: fmt.Sprintf("numasim-hash-%d", n), Title: "Modelled: " + cell.Table,
		Note: fmt.Sprintf("failing waits per second and thread; a wait takes %v beside its cache lines, fitted on: %s",
			cell.Machine.Call, cell.Machine.Fitted),
		Columns: []string{"", "table", "modelled", "published", "off by"},
		Plots: []result.Plot{{
			Caption: "Failing waits per second and thread, modelled; dashed: published.",
			X:       result.Axis{Name: "rows of the table"}, Y: result.Axis{Name: "waits/s", Log: true},
		}},
	}
}

// addPoint adds a cell to the series of its column, and to that of the published figures.
func addPoint(p *result.Plot, cell numasim.HashCell, rate float64) {
	for _, line := range []result.Series{{Name: cell.Column, Y: []float64{rate}}, {Name: cell.Column + ", published", Y: []float64{cell.Published}, Dashed: true}} {
		i := slices.IndexFunc(p.Series, func(s result.Series) bool { return s.Name == line.Name })
		if i < 0 {
			p.Series = append(p.Series, result.Series{Name: line.Name, Dashed: line.Dashed})
			i = len(p.Series) - 1
		}
		s := &p.Series[i]
		row := slices.Index(p.X.Names, cell.Row)
		if row < 0 {
			p.X.Names = append(p.X.Names, cell.Row)
			row = len(p.X.Names) - 1
		}
		s.X, s.Y = append(s.X, float64(row)), append(s.Y, line.Y[0])
	}
}

// modelled runs a command whose sheets come from the cost model.
func (b *bench) modelled(name string, sheets func(ctx context.Context) ([]result.Sheet, error)) error {
	if b.Filter != "" || len(b.Procs) > 0 || b.D != 0 || b.Samples != 0 {
		return usagef("%s takes none of -filter, -procs, -samples and -d: nothing is measured", name)
	}
	out, err := newOutput(b.Out, name, b.JSON)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt()
	defer stop()
	r := newResult(name)
	r.Sheets, err = sheets(ctx)
	r.Seconds = time.Since(r.Started).Seconds()
	r.Interrupted = err == nil && ctx.Err() != nil
	return b.publish(r, out, err)
}

func (c *numasimSpinCmd) Run(b *bench) error {
	machines, locks, err := c.choice()
	if err != nil {
		return err
	}
	return b.modelled("numasim", func(ctx context.Context) ([]result.Sheet, error) {
		effort := numasim.Thorough
		if b.Quick {
			effort = numasim.Glance
		}
		bar := newProgress(b.stderr)
		defer bar.clear()
		sheets := []result.Sheet{costSheet(machines)}
		targets := targetSheet()
		for i, m := range machines {
			threads := c.threads(m, b.Quick)
			s, ours, err := spinSheet(ctx, m, locks, threads, effort, func(part float64) {
				bar.show(time.Duration((float64(i)+part)*float64(time.Second)), time.Duration(len(machines))*time.Second, m.Name)
			})
			sheets = append(sheets, s)
			if err != nil || ctx.Err() != nil {
				return sheets, err
			}
			if err := addTargets(&targets, m, ours, effort); err != nil {
				return sheets, err
			}
		}
		if len(targets.Rows) > 0 {
			sheets = append(sheets, targets)
		}
		return sheets, nil
	})
}

func (c *numasimSpinCmd) choice() (machines []numasim.Machine, locks []string, err error) {
	machines = numasim.Machines
	if len(c.Preset) > 0 {
		machines = nil
	}
	for _, name := range c.Preset {
		m, err := numasim.MachineNamed(name)
		if err != nil {
			return nil, nil, usageError{err}
		}
		machines = append(machines, m)
	}
	if locks = c.Locks; len(locks) == 0 {
		locks = numasim.Compared
	}
	if slices.Equal(locks, []string{"all"}) {
		locks = slices.DeleteFunc(numasim.LockNames(), func(name string) bool { return name == numasim.Baseline })
	}
	for _, name := range locks {
		if !slices.Contains(numasim.LockNames(), name) {
			return nil, nil, usagef("-locks %s: want some of %s", name, strings.Join(numasim.LockNames(), ", "))
		}
	}
	for _, n := range c.Threads {
		for _, m := range machines {
			if n < 1 || n > len(m.CPUs) {
				return nil, nil, usagef("-threads %d: %s has CPUs for 1 to %d", n, m.Name, len(m.CPUs))
			}
		}
	}
	return machines, locks, nil
}

// threads returns the numbers of threads to look at; quickly, every other one.
func (c *numasimSpinCmd) threads(m numasim.Machine, quick bool) []int {
	if len(c.Threads) > 0 {
		return c.Threads
	}
	all := numasim.ThreadsFor(m)
	if !quick {
		return all
	}
	var some []int
	for i := len(all) - 1; i >= 0; i -= 2 {
		some = append(some, all[i])
	}
	slices.Reverse(some)
	return some
}

// costSheet says what the model is made of.
func costSheet(machines []numasim.Machine) result.Sheet {
	s := result.Sheet{
		Name: "numasim-costs", Title: "Modelled machines: what a transfer of a cache line costs",
		Note: "ns, from published measurements of compare-and-swap between pairs of CPUs. All but the last two columns were fixed before the first comparison; " +
			"\"section\" is the one figure per machine that is fitted: what a critical section takes beside waiting for lines",
		Columns: []string{"machine", "CPUs", "same core", "same cache", "same node", "same socket", "other socket", "memory there", "locked", "pause", "section", "fitted on"},
	}
	for _, m := range machines {
		row := []string{m.Name, fmt.Sprint(len(m.CPUs))}
		for _, d := range []time.Duration{m.SameCore, m.SameCluster, m.SameNode, m.SameSocket, m.CrossSocket, m.RemoteHome, m.Locked, m.Pause, m.HandOver} {
			row = append(row, fmt.Sprint(d.Nanoseconds()))
		}
		s.Rows = append(s.Rows, append(row, m.Fitted))
	}
	return s
}

// mostOfOurs is the most threads that hq is looked at with. Of more, in a loop without a moment outside of the lock, nearly all
// wait longer than a goroutine may spin pinned, and sleep: they have too few turns in a run for its fairness to mean anything.
const mostOfOurs = 128

// What hq should come to in the model, and up to how many threads the gain matters as such.
const (
	mostUnfair = 0.62
	leastGain  = -3.0
	fewThreads = 7
)

// An ourCell is what hq comes to with so many threads.
type ourCell struct {
	threads int
	outcome numasim.Outcome
	base    numasim.Outcome // of qspinlock
}

// targetSheet is for what hq misses in the model.
func targetSheet() result.Sheet {
	return result.Sheet{
		Name: "numasim-targets", Title: "Modelled: hq against its targets, where it deviates",
		Note: fmt.Sprintf("the luckier half of the threads has at most %.2f of the acquisitions; up to %d threads hq loses no more than %.0f %%, and beyond it should lose nothing either",
			mostUnfair, fewThreads, -leastGain),
		Columns: []string{"machine", "threads", "", "value", "target", "why"},
	}
}

// addTargets adds the cells of a machine that miss a target, each with its reason.
func addTargets(s *result.Sheet, m numasim.Machine, cells []ourCell, effort numasim.Effort) error {
	for _, c := range cells {
		n := fmt.Sprint(c.threads)
		if fair := c.outcome.TopHalf; math.Round(100*fair) > 100*mostUnfair { // published ones have two digits
			s.Rows = append(s.Rows, []string{m.Name, n, "luckier half", fmt.Sprintf("%.2f", fair), fmt.Sprintf("<= %.2f", mostUnfair), whyUnfair(c)})
		}
		gain, least := c.outcome.Gain(c.base), 0.0
		if c.threads <= fewThreads {
			least = leastGain
		}
		if gain >= least {
			continue
		}
		patient, err := numasim.Patient(m, c.threads, effort)
		if err != nil {
			return err
		}
		s.Rows = append(s.Rows, []string{m.Name, n, "gain, %", fmt.Sprintf("%+.1f", gain), fmt.Sprintf(">= %.0f", least),
			fmt.Sprintf("waiters whose 30 us on the P are spent sleep, and lose their place: without that limit the gain is %+.0f %%", patient.Gain(c.base))})
	}
	return nil
}

// whyUnfair tells which of two reasons a cell has.
func whyUnfair(c ourCell) string {
	if c.threads >= 32 {
		return "some waiters' 30 us on the P are spent: they sleep, and the run is short against their turns"
	}
	return "an owner keeps the lock until the head's request reaches it, the longer the farther that is; modelled queues keep their order, so it is always the same one"
}

// spinSheet is what a machine's locks come to, with a plot of their gains.
func spinSheet(ctx context.Context, m numasim.Machine, locks []string, threads []int, effort numasim.Effort, progress func(part float64)) (s result.Sheet, ours []ourCell, err error) {
	s = result.Sheet{
		Name: "numasim-" + m.Name, Title: "Modelled: " + m.Text,
		Note: fmt.Sprintf("locktorture's loop in the cost model, %d placements of the threads with %d acquisitions each, fewer of slow locks; gains over qspinlock in per cent, published ones for hqkernel; hq lets running threads overtake sleeping ones and is looked at with at most %d",
			effort.Places, effort.Ops, mostOfOurs),
		Columns: []string{"threads", "lock", "ns/acquisition", "gain", "published", "deviation", "luckier half", "max/(max+min)", "published", "handed over in domain", "to another"},
	}
	plot := result.Plot{
		Caption: "Modelled gain over qspinlock in per cent; dashed: published.",
		X:       result.Axis{Name: "threads", Log: true}, Y: result.Axis{Name: "%"},
	}
	published := map[int]numasim.Published{}
	measured := result.Series{Name: "published", Dashed: true}
	for _, p := range numasim.PublishedFor(m.Name) {
		published[p.Threads] = p
		measured.X, measured.Y = append(measured.X, float64(p.Threads)), append(measured.Y, p.Gain)
	}
	series := make([]result.Series, len(locks))
	for i, n := range threads {
		base, err := numasim.Measure(m, numasim.Baseline, n, effort)
		if err != nil || ctx.Err() != nil {
			return s, ours, err
		}
		s.Rows = append(s.Rows, spinRow(n, numasim.Baseline, base, base, numasim.Published{}))
		for j, lock := range locks {
			if lock == numasim.Ours && n > mostOfOurs {
				continue
			}
			o, err := numasim.Measure(m, lock, n, effort)
			if err != nil || ctx.Err() != nil {
				return s, ours, err
			}
			if lock == numasim.Ours {
				ours = append(ours, ourCell{n, o, base})
			}
			p := numasim.Published{}
			if lock == "hqkernel" {
				p = published[n]
			}
			s.Rows = append(s.Rows, spinRow(n, lock, o, base, p))
			series[j].Name = lock
			series[j].X, series[j].Y = append(series[j].X, float64(n)), append(series[j].Y, o.Gain(base))
			progress((float64(i) + float64(j+1)/float64(len(locks))) / float64(len(threads)))
		}
	}
	if plot.Series = series; len(measured.X) > 0 {
		plot.Series = append(plot.Series, measured)
	}
	s.Plots = []result.Plot{plot}
	return s, ours, nil
}

func spinRow(threads int, lock string, o, base numasim.Outcome, p numasim.Published) []string {
	gain, published, deviation, fairness := "", "", "", ""
	if lock != numasim.Baseline {
		gain = fmt.Sprintf("%+.0f", o.Gain(base))
	}
	if p.Threads != 0 {
		published, deviation = fmt.Sprintf("%+.0f", p.Gain), fmt.Sprintf("%+.0f", o.Gain(base)-p.Gain)
	}
	if p.Fairness != 0 {
		fairness = fmt.Sprintf("%.2f", p.Fairness)
	}
	return []string{fmt.Sprint(threads), lock, fmt.Sprintf("%.0f", o.PerOp), gain, published, deviation,
		fmt.Sprintf("%.2f", o.TopHalf), fmt.Sprintf("%.2f", o.MaxMin), fairness, fmt.Sprintf("%.2f", o.Local), fmt.Sprintf("%.2f", o.Remote)}
}
