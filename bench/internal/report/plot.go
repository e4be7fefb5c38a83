package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"regexp"
	"strings"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours that plots are drawn in stand for variables of the page's style sheet, which has them for dark and light.
var (
	inkColor    = color.RGBA{1, 1, 1, 255}
	faintColor  = color.RGBA{2, 2, 2, 255}
	ourColor    = color.RGBA{3, 3, 3, 255}
	syncColor   = color.RGBA{4, 4, 4, 255}
	peerColors  = []color.RGBA{{5, 5, 5, 255}, {6, 6, 6, 255}, {7, 7, 7, 255}, {8, 8, 8, 255}, {9, 9, 9, 255}, {10, 10, 10, 255}, {11, 11, 11, 255}, {12, 12, 12, 255}}
	styleColors = strings.NewReplacer(
		"#010101", "var(--ink)", "#020202", "var(--faint)", "#030303", "var(--ours)", "#040404", "var(--sync)",
		"#050505", "var(--peer1)", "#060606", "var(--peer2)", "#070707", "var(--peer3)", "#080808", "var(--peer4)",
		"#090909", "var(--peer5)", "#0A0A0A", "var(--peer6)", "#0B0B0B", "var(--peer7)", "#0C0C0C", "var(--peer8)",
	)
)

// plotWidth is the width of a plot in its own units. It is shown at one to two pixels a unit, so that its smallest
// text is readable in a window of 400 pixels.
const plotWidth = 360

const fontSize = 10

// margin is left free on the right: the last label is wider in a browser's font than gonum takes it to be.
const margin = 6

// plotsOf returns the plots that the table's rows allow.
func plotsOf(t result.Table) ([]plotted, error) {
	var plots []plotted
	of, base := compared(t)
	for _, rows := range perMeasure(t.Rows) {
		svg, err := dots(rows)
		if err != nil {
			return nil, err
		}
		plots = append(plots, plotted{
			Caption: capital(fmt.Sprintf("%s: ratio to %s with its 95 %% interval; an upright bar is a target.", rows[0].Measure, base)),
			Legend:  []legend{{"ours", "● " + of}, {"sync", "○ " + base + " against itself"}},
			SVG:     svg,
		})
	}
	for _, p := range derivedPlots(t) {
		drawn, err := drawPlot(p)
		if err != nil {
			return nil, err
		}
		plots = append(plots, drawn)
	}
	return plots, nil
}

// perMeasure divides the rows by measure, in their order.
func perMeasure(rows []result.Row) [][]result.Row {
	var groups [][]result.Row
	at := map[result.Measure]int{}
	for _, row := range rows {
		i, known := at[row.Measure]
		if !known {
			i = len(groups)
			at[row.Measure] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], row)
	}
	return groups
}

// newPlot returns a plot without anything in it.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = faintColor, faintColor
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = inkColor, inkColor
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = fontSize, fontSize
		axis.Label.TextStyle.Font.Variant, axis.Tick.Label.Font.Variant = "Sans", "Sans"
	}
	return p
}

// spans are points with a horizontal interval each.
type spans struct {
	plotter.XYs
	plotter.XErrors
}

// dots draws a row each: the ratio of sync2 and the gauge with their intervals, and a bar where the target is.
func dots(rows []result.Row) (template.HTML, error) {
	p := newPlot()
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ratioTicks{}
	names := make([]string, len(rows))
	var ours, gauge spans
	var targets plotter.XYs
	lo, hi := 0.9, 1.1
	for i, row := range rows {
		y := float64(len(rows) - 1 - i)
		names[len(rows)-1-i] = row.Label
		for _, e := range []stats.Estimate{row.Ratio, row.Gauge} {
			if e.N > 0 {
				lo, hi = min(lo, e.Median), max(hi, e.Median)
			}
			if e.Known() {
				lo, hi = min(lo, e.Lo), max(hi, e.Hi)
			}
		}
		ours.add(row.Ratio, y+0.13)
		gauge.add(row.Gauge, y-0.22)
		if row.Target != nil {
			lo, hi = min(lo, row.Target.Bound), max(hi, row.Target.Bound)
			targets = append(targets, plotter.XY{X: row.Target.Bound, Y: y + 0.13})
		}
	}
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = fontSize
	p.Y.Width, p.Y.Tick.Width = 0, 0
	p.Y.Min, p.Y.Max = -0.6, float64(len(rows))-0.4
	p.X.Min, p.X.Max = lo/1.1, hi*1.1
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return "", err
	}
	one.Color = faintColor
	p.Add(one)
	if err := gauge.draw(p, syncColor, draw.RingGlyph{}); err != nil {
		return "", err
	}
	if err := ours.draw(p, ourColor, draw.CircleGlyph{}); err != nil {
		return "", err
	}
	if len(targets) > 0 {
		marks, err := plotter.NewScatter(targets)
		if err != nil {
			return "", err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: inkColor, Radius: 4, Shape: targetGlyph{}}
		p.Add(marks)
	}
	return svgOf(p, plotWidth, vg.Length(40+20*len(rows)), "dot plot of ratios: "+strings.Join(names, ", "))
}

func (s *spans) add(e stats.Estimate, y float64) {
	if e.N == 0 {
		return
	}
	low, high := 0.0, 0.0
	if e.Known() {
		low, high = e.Median-e.Lo, e.Hi-e.Median
	}
	s.XYs = append(s.XYs, plotter.XY{X: e.Median, Y: y})
	s.XErrors = append(s.XErrors, struct{ Low, High float64 }{low, high})
}

func (s *spans) draw(p *plot.Plot, c color.Color, shape draw.GlyphDrawer) error {
	if len(s.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewXErrorBars(s)
	if err != nil {
		return err
	}
	bars.Color, bars.CapWidth, bars.Width = c, 0, 1.5
	points, err := plotter.NewScatter(s.XYs)
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 3, Shape: shape}
	p.Add(bars, points)
	return nil
}

// targetGlyph is an upright bar.
type targetGlyph struct{}

func (targetGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: s.Color, Width: 1})
	var path vg.Path
	path.Move(vg.Point{X: at.X, Y: at.Y - s.Radius})
	path.Line(vg.Point{X: at.X, Y: at.Y + s.Radius})
	c.Stroke(path)
}

// ratioTicks marks a few round ratios of the range, 1 among them.
type ratioTicks struct{}

func (ratioTicks) Ticks(lo, hi float64) []plot.Tick {
	candidates := [][]float64{
		{0.8, 0.9, 1, 1.1, 1.25, 1.5},
		{0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4},
		{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100},
		{1e-3, 1e-2, 0.1, 1, 10, 100, 1000},
		{1e-6, 1e-4, 1e-2, 1, 100, 1e4, 1e6},
	}
	var ticks []plot.Tick
	for _, values := range candidates {
		ticks = nil
		for _, v := range values {
			if lo <= v && v <= hi {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%gx", v)})
			}
		}
		if values[0] <= lo*1.3 && values[len(values)-1] >= hi/1.3 {
			break
		}
	}
	return ticks
}

var svgSize = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)

// svgOf renders the plot as an element of the page.
func svgOf(p *plot.Plot, w, h vg.Length, label string) (template.HTML, error) {
	canvas := vgsvg.New(w, h)
	p.Draw(draw.Crop(draw.New(canvas), 0, -margin, 0, 0))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	svg := b.String()
	svg = svg[strings.Index(svg, "<svg"):] // without the XML declaration, which has no place inside a page
	svg = svgSize.ReplaceAllString(svg, `<svg role="img" aria-label="`+template.HTMLEscapeString(label)+`"`)
	// Labels of rows come from this program; vgsvg escapes all text it draws.
	return template.HTML(styleColors.Replace(svg)), nil
}
