package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/hqsync/hqsync/bench/internal/result"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A look is how a series is drawn, and its class in the style sheet.
type look struct {
	class string
	color color.RGBA
}

// looksOf gives every series of a plot its look. A name before a comma stands for one look: "sync2, 16 goroutines" is
// sync2's. Those of published figures, which are dashed, share it with the series of the same name.
func looksOf(series []result.Series) []look {
	known := map[string]look{result.Sync: {"sync", syncColor}, result.Sync2: {"ours", ourColor}}
	looks := make([]look, len(series))
	next := 0
	for i, s := range series {
		name, _, _ := strings.Cut(s.Name, ",")
		l, ok := known[name]
		if !ok {
			l = look{fmt.Sprintf("peer%d", 1+next%len(peerColors)), peerColors[next%len(peerColors)]}
			known[name] = l
			next++
		}
		looks[i] = l
	}
	return looks
}

// nanosecondAxis is the name of an axis whose labels are times with their units.
const nanosecondAxis = "ns"

// capital returns the sentence with a capital at its begin.
func capital(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToUpper(sentence[:1]) + sentence[1:]
}

// drawPlot draws a line with dots for each series.
func drawPlot(c result.Plot) (plotted, error) {
	p := newPlot()
	looks := looksOf(c.Series)
	out := plotted{Caption: capital(c.Caption), Unit: c.Y.Name}
	if c.Y.Name == nanosecondAxis {
		out.Unit = ""
	}
	for i, s := range c.Series {
		if err := addSeries(p, s, looks[i]); err != nil {
			return plotted{}, err
		}
		mark := "● "
		if s.Dashed {
			mark = "○ "
		}
		out.Legend = append(out.Legend, legend{looks[i].class, mark + s.Name})
	}
	p.X.Padding, p.Y.Padding = 4, 4
	p.X.Label.Text = c.X.Name
	setRange(&p.Y, c.Y, c.Series)
	setTicks(&p.X, c.X, c.Series)
	svg, err := svgOf(p, plotWidth, 210, c.Caption)
	out.SVG = svg
	return out, err
}

func addSeries(p *plot.Plot, s result.Series, l look) error {
	points := make(plotter.XYs, len(s.X))
	for i := range s.X {
		points[i] = plotter.XY{X: s.X[i], Y: s.Y[i]}
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("bench: series %s: %w", s.Name, err)
	}
	line.Color, line.Width = l.color, 1.5
	dots.GlyphStyle = draw.GlyphStyle{Color: l.color, Radius: 2.5, Shape: draw.CircleGlyph{}}
	if s.Dashed {
		line.Dashes = []vg.Length{4, 3}
		dots.Shape = draw.RingGlyph{}
	}
	p.Add(line, dots)
	if len(s.Lo) == 0 {
		return nil
	}
	whiskers := struct {
		plotter.XYs
		plotter.YErrors
	}{XYs: points}
	for i := range s.Lo {
		whiskers.YErrors = append(whiskers.YErrors, struct{ Low, High float64 }{s.Y[i] - s.Lo[i], s.Hi[i] - s.Y[i]})
	}
	bars, err := plotter.NewYErrorBars(whiskers)
	if err != nil {
		return fmt.Errorf("bench: intervals of %s: %w", s.Name, err)
	}
	bars.Color, bars.CapWidth, bars.Width = l.color, 0, 1
	p.Add(bars)
	return nil
}

// setRange leaves some room around the values: at least a factor of two on a logarithmic axis, so that noise does not
// fill the plot; from zero on another, if that is near.
func setRange(axis *plot.Axis, of result.Axis, series []result.Series) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, values := range [][]float64{s.Y, s.Lo, s.Hi} {
			for _, v := range values {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if of.Log {
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, decadeTicks{time: of.Name == nanosecondAxis}
		if hi < 2*lo {
			middle := math.Sqrt(lo * hi)
			lo, hi = middle/math.Sqrt2, middle*math.Sqrt2
		}
		axis.Min, axis.Max = lo/1.1, hi*1.1
		return
	}
	if lo > 0 && lo < hi/2 {
		lo = 0
	}
	room := max((hi-lo)/20, math.Abs(hi)/50)
	axis.Min, axis.Max = lo-room, hi+room
	if lo == 0 {
		axis.Min = 0
	}
}

// mostTicks is the largest number of values that are marked one by one.
const mostTicks = 8

// setTicks marks the values themselves if they are few.
func setTicks(axis *plot.Axis, of result.Axis, series []result.Series) {
	if of.Log {
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, decadeTicks{}
	}
	var values []float64
	for _, s := range series {
		values = append(values, s.X...)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) > mostTicks && len(of.Names) == 0 {
		return
	}
	var ticks plot.ConstantTicks
	for _, v := range values {
		label := short(v)
		if i := int(v); i >= 0 && i < len(of.Names) {
			label = of.Names[i]
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	axis.Tick.Marker = ticks
}

// decadeTicks marks round values, the fewer of a decade the more decades there are.
type decadeTicks struct{ time bool }

func (d decadeTicks) Ticks(lo, hi float64) []plot.Tick {
	name := short
	if d.time {
		name = nanoseconds
	}
	for _, factors := range [][]float64{{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}, {1, 2, 5}, {1}} {
		var ticks []plot.Tick
		for exponent := math.Floor(math.Log10(lo)); exponent <= math.Ceil(math.Log10(hi)); exponent++ {
			for _, factor := range factors {
				if v := factor * math.Pow(10, exponent); lo <= v && v <= hi {
					ticks = append(ticks, plot.Tick{Value: v, Label: name(v)})
				}
			}
		}
		if len(ticks) <= mostTicks {
			return ticks
		}
	}
	return plot.LogTicks{Prec: 1}.Ticks(lo, hi)
}

// short prints a number with its thousands as k, M and G.
func short(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if math.Abs(v) < 9999.5 {
			break
		}
		v, unit = v/1000, u
	}
	return fmt.Sprintf("%.4g%s", v, unit)
}
