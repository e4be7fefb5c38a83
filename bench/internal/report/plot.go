package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"slices"
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
	peerColors  = []color.RGBA{{5, 5, 5, 255}, {6, 6, 6, 255}}
	styleColors = strings.NewReplacer(
		"#010101", "var(--ink)", "#020202", "var(--faint)", "#030303", "var(--ours)", "#040404", "var(--sync)",
		"#050505", "var(--peer1)", "#060606", "var(--peer2)",
	)
)

// plotWidth is the width of a plot in its own units. It is shown at one to two pixels a unit, so that its smallest
// text is readable in a window of 400 pixels.
const plotWidth = 360

const fontSize = 10

// plotsOf returns the plots that the table's rows allow.
func plotsOf(t result.Table) ([]plotted, error) {
	var plots []plotted
	for _, rows := range perMeasure(t.Rows) {
		svg, err := dots(rows)
		if err != nil {
			return nil, err
		}
		plots = append(plots, plotted{
			Caption: fmt.Sprintf("%s: ratio to sync with its 95 %% interval; an upright bar is a target.", rows[0].Measure),
			Legend:  []legend{{"ours", "● sync2"}, {"sync", "○ sync against itself"}},
			SVG:     svg,
		})
	}
	for _, rows := range perMeasure(t.Rows) {
		for _, curve := range curvesOf(rows) {
			svg, err := lines(curve, t.Peers)
			if err != nil {
				return nil, err
			}
			plots = append(plots, plotted{curve.caption, legendOf(t.Peers), svg})
		}
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
		{1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000, 1e4},
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

// curve is one measure against the number of goroutines, all else the same.
type curve struct {
	caption string
	rows    []result.Row
}

// curvesOf divides the rows by all their parameters but the number of goroutines. Fewer than three make no curve.
func curvesOf(rows []result.Row) []curve {
	var found []curve
	at := map[string]int{}
	for _, row := range rows {
		if row.Mean || row.Params["g"] == 0 || row.Against != result.Sync {
			continue
		}
		key := fmt.Sprintf("%d steps inside, %d outside", row.Params["in"], row.Params["out"])
		i, known := at[key]
		if !known {
			i = len(found)
			at[key] = i
			found = append(found, curve{caption: fmt.Sprintf("%s in ns against goroutines: %s.", valueName(row.Measure), key)})
		}
		found[i].rows = append(found[i].rows, row)
	}
	return slices.DeleteFunc(found, func(c curve) bool { return len(c.rows) < 3 })
}

func valueName(m result.Measure) string {
	if isWait(m) {
		return string(m)
	}
	return "time per section"
}

// legendOf names the lines of a curve plot, in the classes that lines gives them.
func legendOf(peers []string) []legend {
	names := []legend{{"sync", "● " + result.Sync}, {"ours", "● " + result.Sync2}}
	for i, peer := range peers {
		names = append(names, legend{fmt.Sprintf("peer%d", 1+i%len(peerColors)), "● " + peer})
	}
	return names
}

// lines draws a curve for each implementation, both axes logarithmic.
func lines(c curve, peers []string) (template.HTML, error) {
	p := newPlot()
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = decadeTicks{}
	p.X.Padding, p.Y.Padding = 4, 4
	var ticks plot.ConstantTicks
	for _, row := range c.rows {
		g := row.Params["g"]
		ticks = append(ticks, plot.Tick{Value: float64(g), Label: fmt.Sprint(g)})
	}
	p.X.Tick.Marker = ticks
	names := append([]string{result.Sync, result.Sync2}, peers...)
	colors := append([]color.RGBA{syncColor, ourColor}, peerColors...)
	lo, hi := math.Inf(1), 0.0
	for i, name := range names {
		var points plotter.XYs
		for _, row := range c.rows {
			if e := row.Values[name]; e.N > 0 && e.Median > 0 {
				points = append(points, plotter.XY{X: float64(row.Params["g"]), Y: e.Median})
				lo, hi = min(lo, e.Median), max(hi, e.Median)
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return "", err
		}
		line.Color, line.Width = colors[i%len(colors)], 1.5
		dots.GlyphStyle = draw.GlyphStyle{Color: colors[i%len(colors)], Radius: 2.5, Shape: draw.CircleGlyph{}}
		p.Add(line, dots)
	}
	// At least a factor of two, so that noise does not fill the plot.
	if hi < 2*lo {
		middle := math.Sqrt(lo * hi)
		lo, hi = middle/math.Sqrt2, middle*math.Sqrt2
	}
	p.Y.Min, p.Y.Max = lo/1.1, hi*1.1
	return svgOf(p, plotWidth, 200, c.caption)
}

// decadeTicks marks round times, the fewer of a decade the more decades there are.
type decadeTicks struct{}

func (decadeTicks) Ticks(lo, hi float64) []plot.Tick {
	for _, factors := range [][]float64{{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}, {1, 2, 5}, {1}} {
		var ticks []plot.Tick
		for exponent := math.Floor(math.Log10(lo)); exponent <= math.Ceil(math.Log10(hi)); exponent++ {
			for _, factor := range factors {
				if v := factor * math.Pow(10, exponent); lo <= v && v <= hi {
					ticks = append(ticks, plot.Tick{Value: v, Label: nanoseconds(v)})
				}
			}
		}
		if len(ticks) <= 8 {
			return ticks
		}
	}
	return plot.LogTicks{Prec: 1}.Ticks(lo, hi)
}

var svgSize = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)

// svgOf renders the plot as an element of the page.
func svgOf(p *plot.Plot, w, h vg.Length, label string) (template.HTML, error) {
	canvas := vgsvg.New(w, h)
	p.Draw(draw.New(canvas))
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
