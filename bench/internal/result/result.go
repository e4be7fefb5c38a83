// Package result holds what was measured, in the form in which it is judged, printed and kept as JSON.
package result

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hqsync/hqsync/bench/internal/environ"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// Format is the version of the JSON form.
const Format = 1

// The implementations that are always measured. Again is package sync a second time, measured as if it were another
// implementation: how far its ratio to Sync strays from 1 shows what a ratio of that row is worth.
const (
	Sync  = "sync"
	Sync2 = "sync2"
	Again = "sync-again"
)

// A Result is one run of one command.
type Result struct {
	Format      int         `json:"format"`
	Command     string      `json:"command"`
	Started     time.Time   `json:"started"`
	Seconds     float64     `json:"seconds"`
	Environment environ.Env `json:"environment"`
	StepNS      float64     `json:"step_ns"` // one step of simulated work
	Samples     int         `json:"samples"` // planned for each row
	SampleNS    int64       `json:"sample_ns"`
	TimedNS     int64       `json:"timed_sample_ns"`
	TurnNS      int64       `json:"turn_ns"` // while waits are timed
	Interrupted bool        `json:"interrupted"`
	Tables      []Table     `json:"tables"`
	Sheets      []Sheet     `json:"sheets,omitempty"`
}

// A Table is a set of rows that belong together.
type Table struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Note  string   `json:"note"` // what the rows are and how to read them
	Rows  []Row    `json:"rows"`
	Peers []string `json:"peers"` // implementations beside the three, in the order of their columns
}

// A Row is one measure of one workload.
type Row struct {
	Name    string         `json:"name"` // as in go test -bench, without the implementation
	Label   string         `json:"label"`
	Measure Measure        `json:"measure"`
	Params  map[string]int `json:"params,omitempty"`

	// Samples are the measured values by implementation; those with the same index were taken one after another.
	Samples map[string][]float64      `json:"samples"`
	Values  map[string]stats.Estimate `json:"values"`

	// Ratio is Of to Against, as Measure says; Gauge is Again to Base; Peers are the others to Base, which is Sync if it
	// is empty.
	Of      string                    `json:"of"`
	Against string                    `json:"against"`
	Base    string                    `json:"base,omitempty"`
	Ratio   stats.Estimate            `json:"ratio"`
	Gauge   stats.Estimate            `json:"gauge"`
	Peers   map[string]stats.Estimate `json:"peers,omitempty"`

	Target  *Target `json:"target,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`

	// Extra are medians beside the measure by name and implementation, such as the fairness of the same samples.
	Extra map[string]map[string]float64 `json:"extra,omitempty"`

	Mean bool `json:"mean,omitempty"` // the row is the geometric mean of the rows above it
}

// A Measure is a kind of value.
type Measure string

// The measures. Values are nanoseconds, of wall time per operation of all goroutines together or of waiting, but for
// Bytes.
const (
	Speed      Measure = "speed"      // ratio: how many times as many operations in the same time; above 1 is better
	Throughput Measure = "throughput" // the same
	Time       Measure = "time"       // ratio: how many times as long; below 1 is better
	Rate       Measure = "requests/s" // the same, of a server; values are nanoseconds per request
	P50        Measure = "p50"        // of the time to an answer; ratios as of Time
	P99        Measure = "p99"
	P999       Measure = "p99.9"
	WaitP999   Measure = "p99.9 wait"
	WaitMax    Measure = "max wait"  // of a sample; a row's value is the median over the samples
	WakerCPU   Measure = "waker cpu" // CPU time of the goroutine that wakes, per wake-up; ratios as of Time
	TotalCPU   Measure = "total cpu" // CPU time of the process, per wake-up
	Bytes      Measure = "bytes"     // of memory per goroutine
)

// Inverted reports whether a ratio divides the other implementation's value by ours.
func (m Measure) Inverted() bool { return m == Speed || m == Throughput || m == Rate }

// ratios returns the ratio of every pair.
func (m Measure) ratios(of, against []float64) []float64 {
	if m.Inverted() {
		return stats.Ratios(against, of)
	}
	return stats.Ratios(of, against)
}

// A Target bounds a ratio from the bad side.
type Target struct {
	Bound float64 `json:"bound"`
	// Above: the ratio must be at least Bound; else at most.
	Above bool `json:"above"`
	// HarmlessNS: a value of ours up to this meets the target whatever the ratio is. 0: no such value.
	HarmlessNS float64 `json:"harmless_ns,omitempty"`
}

// AtLeast and AtMost make targets.
func AtLeast(bound float64) *Target { return &Target{Bound: bound, Above: true} }

// AtMost returns the target that a ratio is at most bound.
func AtMost(bound float64) *Target { return &Target{Bound: bound} }

func (t Target) String() string {
	if t.Above {
		return fmt.Sprintf(">= %.2fx", t.Bound)
	}
	return fmt.Sprintf("<= %.2fx", t.Bound)
}

func (t Target) reached(ratio float64) bool {
	if t.Above {
		return ratio >= t.Bound
	}
	return ratio <= t.Bound
}

// A Verdict says whether a target was reached.
type Verdict string

// The verdicts.
const (
	Met       Verdict = "met"          // the median reaches the target
	Noise     Verdict = "within noise" // its interval does
	Missed    Verdict = "missed"       // neither
	Undecided Verdict = "undecided"    // there are too few samples for an interval, or none that can be compared
)

func (t Target) judge(value float64, ratio stats.Estimate) Verdict {
	switch {
	case ratio.N == 0:
		return Undecided
	case t.reached(ratio.Median), t.HarmlessNS > 0 && value <= t.HarmlessNS:
		return Met
	case !ratio.Known():
		return Undecided
	case t.reached(ratio.Lo), t.reached(ratio.Hi):
		return Noise
	}
	return Missed
}

// Evaluate fills the estimates and the verdict from the samples.
func (r *Row) Evaluate() {
	r.Values = map[string]stats.Estimate{}
	r.Peers = map[string]stats.Estimate{}
	base := r.BaseName()
	for name, samples := range r.Samples {
		r.Values[name] = stats.Median(samples)
		switch name {
		case base, r.Of:
		case Again:
			r.Gauge = stats.Median(r.Measure.ratios(samples, r.Samples[base]))
		default:
			r.Peers[name] = stats.Median(r.Measure.ratios(samples, r.Samples[base]))
		}
	}
	r.Ratio = stats.Median(r.Measure.ratios(r.Samples[r.Of], r.Samples[r.Against]))
	if r.Target != nil {
		r.Verdict = r.Target.judge(r.Values[r.Of].Median, r.Ratio)
	}
}

// BaseName returns the name of what the gauge and the peers are compared with.
func (r *Row) BaseName() string {
	if r.Base == "" {
		return Sync
	}
	return r.Base
}

// Mean returns the geometric mean of the rows as a row: of each round, then the median over the rounds, so that its
// interval is of the same kind as theirs. Only rounds that all rows finished count, and implementations that all rows have.
func Mean(rows []Row, label string, target *Target) Row {
	first := rows[0]
	mean := Row{
		Name: "GeometricMean", Label: label, Measure: first.Measure, Of: first.Of, Against: first.Against, Base: first.Base,
		Target: target, Mean: true, Samples: map[string][]float64{},
	}
	for name := range first.Samples {
		rounds := math.MaxInt
		for _, row := range rows {
			rounds = min(rounds, len(row.Samples[name]))
		}
		for round := range rounds {
			values := make([]float64, len(rows))
			for i, row := range rows {
				values[i] = row.Samples[name][round]
			}
			mean.Samples[name] = append(mean.Samples[name], stats.GeoMean(values))
		}
	}
	mean.Evaluate()
	return mean
}

// A GaugeSummary is what the rows of a result say about package sync against itself.
type GaugeSummary struct {
	Rows, Holding  int     // rows with an interval, and those among them whose interval holds 1
	Median, Lo, Hi float64 // over the rows: median and extremes of the ratio
}

// Gauge summarizes the noise gauge of all rows.
func (r *Result) Gauge() GaugeSummary {
	var medians []float64
	g := GaugeSummary{Lo: math.Inf(1), Hi: math.Inf(-1)}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if row.Mean || !row.Gauge.Known() {
				continue
			}
			g.Rows++
			if row.Gauge.Holds(1) {
				g.Holding++
			}
			medians = append(medians, row.Gauge.Median)
			g.Lo, g.Hi = min(g.Lo, row.Gauge.Median), max(g.Hi, row.Gauge.Median)
		}
	}
	g.Median = stats.Median(medians).Median
	return g
}

// Count returns the number of rows with that verdict.
func (r *Result) Count(v Verdict) int {
	n := 0
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if row.Verdict == v {
				n++
			}
		}
	}
	return n
}

// Write writes the result as JSON.
func (r *Result) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	return enc.Encode(r)
}

// Read reads what Write wrote.
func Read(src io.Reader) (*Result, error) {
	r := new(Result)
	if err := json.NewDecoder(src).Decode(r); err != nil {
		return nil, fmt.Errorf("bench: not a result: %w", err)
	}
	return r, readable(r.Format)
}

// readable returns an error if the format is not this program's.
func readable(format int) error {
	if format != Format {
		return fmt.Errorf("bench: result has format %d, this program reads format %d", format, Format)
	}
	return nil
}
