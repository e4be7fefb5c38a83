package report

import (
	"fmt"
	"slices"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// over are the parameters that a table may sweep, and what an axis calls them.
var over = []struct{ param, name string }{{"g", "goroutines"}, {"workers", "workers"}, {"slots", "slots"}}

// fewest is the smallest number of points that make a curve.
const fewest = 3

// derivedPlots returns the plots of a table's rows beside the one of ratios.
func derivedPlots(t result.Table) []result.Plot {
	var plots []result.Plot
	for _, rows := range perMeasure(t.Rows) {
		for _, c := range curvesOf(rows) {
			plots = append(plots, c.plot(t.Peers))
		}
	}
	if p, ok := percentiles(t); ok {
		plots = append(plots, p)
	}
	if p, ok := fairnessPlot(t); ok {
		plots = append(plots, p)
	}
	return plots
}

// curve is one measure against one parameter, all others the same.
type curve struct {
	axis, key string
	param     string
	rows      []result.Row
}

// curvesOf divides the rows by all their parameters but the swept one.
func curvesOf(rows []result.Row) []curve {
	var found []curve
	at := map[string]int{}
	for _, row := range rows {
		for _, sweep := range over {
			if row.Mean || row.Params[sweep.param] == 0 || row.Against != row.BaseName() {
				continue
			}
			key := workOf(row)
			i, known := at[sweep.param+key]
			if !known {
				i = len(found)
				at[sweep.param+key] = i
				found = append(found, curve{axis: sweep.name, param: sweep.param, key: key})
			}
			found[i].rows = append(found[i].rows, row)
		}
	}
	return slices.DeleteFunc(found, func(c curve) bool { return len(c.rows) < fewest || !c.sweeps() })
}

// sweeps reports whether the rows differ in the curve's parameter, each from each.
func (c curve) sweeps() bool {
	seen := map[int]bool{}
	for _, row := range c.rows {
		seen[row.Params[c.param]] = true
	}
	return len(seen) == len(c.rows)
}

// workOf says what the row's goroutines do, "" if its parameters do not say.
func workOf(row result.Row) string {
	in, known := row.Params["in"]
	if !known {
		return ""
	}
	return fmt.Sprintf("%d steps inside, %d outside", in, row.Params["out"])
}

func (c curve) plot(peers []string) result.Plot {
	measure := c.rows[0].Measure
	caption := fmt.Sprintf("%s against %s", valueName(measure), c.axis)
	if c.key != "" {
		caption += ": " + c.key
	}
	p := result.Plot{Caption: caption + ".", X: result.Axis{Name: c.axis, Log: true}, Y: result.Axis{Name: nanosecondAxis, Log: true}}
	shown := func(ns float64) float64 { return ns }
	if measure == result.Rate {
		p.Y.Name, shown = string(measure), func(ns float64) float64 { return 1e9 / ns }
	}
	for _, name := range append([]string{c.rows[0].BaseName(), c.rows[0].Of}, peers...) {
		s := result.Series{Name: name}
		for _, row := range c.rows {
			if e := row.Values[name]; e.N > 0 && e.Median > 0 {
				s.X, s.Y = append(s.X, float64(row.Params[c.param])), append(s.Y, shown(e.Median))
			}
		}
		if len(s.X) > 0 {
			p.Series = append(p.Series, s)
		}
	}
	return p
}

func valueName(m result.Measure) string {
	switch m {
	case result.Speed, result.Throughput, result.Time:
		return "time per operation of all together"
	}
	return string(m)
}

// percentiles shows the whole distribution of waits for few and for many goroutines: the geometric means over the
// kinds of work.
func percentiles(t result.Table) (result.Plot, bool) {
	groups := perMeasure(t.Rows)
	if len(groups) != 2 || groups[0][0].Measure != result.WaitP999 || groups[1][0].Measure != result.WaitMax {
		return result.Plot{}, false
	}
	p := result.Plot{
		Caption: "Waits at percentiles, geometric mean over the kinds of work; dashed: with the most goroutines of the table.",
		X:       result.Axis{Name: "percentile", Names: []string{"p50", "p99", "p99.9", "max"}}, Y: result.Axis{Name: nanosecondAxis, Log: true},
	}
	gs := goroutinesOf(groups[0])
	if len(gs) < 2 {
		return result.Plot{}, false
	}
	for i, g := range []int{gs[(len(gs)-1)/2], gs[len(gs)-1]} {
		for _, name := range []string{result.Sync, result.Sync2} {
			at := func(rows []result.Row, value func(result.Row) float64) float64 {
				var values []float64
				for _, row := range rows {
					if row.Params["g"] == g && value(row) > 0 {
						values = append(values, value(row))
					}
				}
				return stats.GeoMean(values)
			}
			extra := func(kind string) func(result.Row) float64 {
				return func(r result.Row) float64 { return r.Extra[kind][name] }
			}
			median := func(r result.Row) float64 { return r.Values[name].Median }
			p.Series = append(p.Series, result.Series{
				Name: fmt.Sprintf("%s, %d goroutines", name, g), Dashed: i == 1, X: []float64{0, 1, 2, 3},
				Y: []float64{at(groups[0], extra("p50 wait ns")), at(groups[0], extra("p99 wait ns")), at(groups[0], median), at(groups[1], median)},
			})
		}
	}
	return p, true
}

// fairnessPlot shows how much the luckier half of the goroutines got: the median over the kinds of work.
func fairnessPlot(t result.Table) (result.Plot, bool) {
	gs := goroutinesOf(t.Rows)
	p := result.Plot{
		Caption: "Fairness against goroutines: the share of the luckier half of them, median over the kinds of work; 0.5 is even.",
		X:       result.Axis{Name: "goroutines", Log: true}, Y: result.Axis{Name: "share"},
	}
	for _, name := range []string{result.Sync, result.Sync2} {
		s := result.Series{Name: name}
		for _, g := range gs {
			var shares []float64
			for _, row := range t.Rows {
				if top, known := row.Extra["top half"][name]; known && row.Params["g"] == g && g > 1 {
					shares = append(shares, top)
				}
			}
			if len(shares) > 0 {
				s.X, s.Y = append(s.X, float64(g)), append(s.Y, stats.Median(shares).Median)
			}
		}
		p.Series = append(p.Series, s)
	}
	return p, len(p.Series[0].X) >= fewest
}

// goroutinesOf returns the numbers of goroutines that the rows have, in order.
func goroutinesOf(rows []result.Row) []int {
	var gs []int
	for _, row := range rows {
		if g := row.Params["g"]; g > 0 && !slices.Contains(gs, g) {
			gs = append(gs, g)
		}
	}
	slices.Sort(gs)
	return gs
}
