package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/hqsync/hqsync/bench/internal/environ"
	"github.com/hqsync/hqsync/bench/internal/result"
)

// sample makes a result of n rounds: a headline, a grid with means and peers, waits.
func sample(n int) *result.Result {
	rng := rand.New(rand.NewPCG(3, 4))
	row := func(name string, m result.Measure, g int, value, ratio float64, target *result.Target, peers ...string) result.Row {
		r := result.Row{Name: name, Label: name, Measure: m, Of: result.Sync2, Against: result.Sync, Target: target,
			Samples: map[string][]float64{}, Params: map[string]int{"g": g, "in": 20, "out": 20},
			Extra: map[string]map[string]float64{"top half": {result.Sync: 0.61, result.Sync2: 0.52}, "cpu ns": {result.Sync: 20, result.Sync2: 10}}}
		for range n {
			r.Samples[result.Sync] = append(r.Samples[result.Sync], value*(1+0.1*rng.Float64()))
			r.Samples[result.Again] = append(r.Samples[result.Again], value*(1+0.1*rng.Float64()))
			r.Samples[result.Sync2] = append(r.Samples[result.Sync2], value*ratio*(1+0.1*rng.Float64()))
			for _, peer := range peers {
				r.Samples[peer] = append(r.Samples[peer], value*5*(1+0.1*rng.Float64()))
			}
		}
		r.Evaluate()
		return r
	}
	grid := result.Table{Name: "grid", Title: "Grid", Note: "g goroutines & <more>", Peers: []string{"channel", "semaphore"}}
	waits := result.Table{Name: "waits", Title: "Waits", Note: "waits"}
	for _, g := range []int{2, 16, 128, 1024} {
		name := fmt.Sprintf("g=%d", g)
		grid.Rows = append(grid.Rows, row(name, result.Throughput, g, 50+float64(g), 0.7, result.AtLeast(0.95), grid.Peers...))
		waits.Rows = append(waits.Rows, row(name, result.WaitMax, g, 1e6*float64(g), 0.01, result.AtMost(2)))
	}
	grid.Rows = append(grid.Rows, result.Mean(grid.Rows, "geometric mean", result.AtLeast(1.25)))
	return &result.Result{
		Format: result.Format, Command: "test", Started: time.Now(), Environment: environ.Env{CPU: `"Fast" <CPU> & co`, Settings: map[string]string{"GODEBUG": "x=1"}},
		StepNS: 1.6, Samples: n, SampleNS: 1e8, TimedNS: 2e8, TurnNS: 2e4,
		Tables: []result.Table{
			{Name: "headline", Title: "Headline", Note: "n", Rows: []result.Row{row("Mutex, uncontended", result.Speed, 0, 12, 0.55, result.AtLeast(1.67))}},
			grid, waits,
		},
		Sheets: []result.Sheet{{
			Name: "sheet", Title: "Sheet", Note: "model & <measurement>", Columns: []string{"", "threads", "gain"}, Rows: [][]string{{"8", "1", "19 %"}, {"16", "2", "13 %"}},
			Plots: []result.Plot{{
				Caption: "Gain.", X: result.Axis{Name: "threads", Log: true}, Y: result.Axis{Name: "%"},
				Series: []result.Series{
					{Name: "model", X: []float64{8, 16, 32}, Y: []float64{20, 10, -5}, Lo: []float64{18, 8, -7}, Hi: []float64{21, 12, -1}},
					{Name: "model, published", X: []float64{8, 16, 32}, Y: []float64{19, 13, 8}, Dashed: true},
				},
			}},
		}},
	}
}

// elements returns all elements of that name below the node.
func elements(n *html.Node, name string) []*html.Node {
	var found []*html.Node
	if n.Type == html.ElementNode && n.Data == name {
		found = append(found, n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		found = append(found, elements(c, name)...)
	}
	return found
}

func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	s := ""
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		s += text(c)
	}
	return s
}

func TestHTML_IsOneWholePage(t *testing.T) {
	for _, n := range []int{2, 10} { // without intervals and with them
		r := sample(n)
		var b bytes.Buffer
		if err := HTML(&b, r); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, page)
		wantRows := []int{len(r.Tables[0].Rows), len(r.Tables[1].Rows), len(r.Tables[2].Rows), len(r.Sheets[0].Rows)}
		sections := elements(doc, "section")
		if len(sections) != len(wantRows) {
			t.Fatalf("%d sections, want %d", len(sections), len(wantRows))
		}
		for i, section := range sections {
			if rows := elements(section, "tr"); len(rows) != 1+wantRows[i] {
				t.Errorf("section %d has %d rows, want %d and a header", i, len(rows), wantRows[i])
			}
		}
		// A dot plot for each table, the fairness of each, a curve for the grid and one for the waits, and the sheet's.
		svgs := elements(doc, "svg")
		if len(svgs) != 8 {
			t.Errorf("%d plots, want 8", len(svgs))
		}
		for i, svg := range svgs {
			if len(elements(svg, "path")) < 4 || len(elements(svg, "text")) < 2 {
				t.Errorf("plot %d has %d paths and %d labels: nothing is drawn", i, len(elements(svg, "path")), len(elements(svg, "text")))
			}
		}
		for _, name := range []string{"script", "img", "iframe", "object"} {
			if len(elements(doc, name)) > 0 {
				t.Errorf("page has a %s element", name)
			}
		}
		if body := text(doc); !strings.Contains(body, `"Fast" <CPU> & co`) || !strings.Contains(body, "g goroutines & <more>") || !strings.Contains(body, "x=1") {
			t.Error("the environment or a note is not shown as it was written")
		}
		// A colour that stayed as it was drawn would be black on black.
		for _, left := range []string{"#01", "#02", "#03", "#04", "#05", "#06", "#07", "<?xml"} {
			if strings.Contains(page, left) {
				t.Errorf("page still has %q", left)
			}
		}
	}
}

// balanced checks what html.Parse repairs in silence: that every tag is closed where it should be. It also looks for
// addresses, other than the names of name spaces.
func balanced(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "link": true, "br": true}
	var open []string
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) || len(open) > 0 {
				t.Errorf("page ends with %v inside %v", z.Err(), open)
			}
			return
		case html.StartTagToken:
			token := z.Token()
			if !void[token.Data] {
				open = append(open, token.Data)
			}
			for _, a := range token.Attr {
				if (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "data:") && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("page loads %s", a.Val)
				}
			}
		case html.EndTagToken:
			token := z.Token()
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> inside %v", token.Data, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func TestPlots_AreWellFormed(t *testing.T) {
	for _, table := range sample(10).Tables {
		plots, err := plotsOf(table)
		if err != nil || len(plots) == 0 {
			t.Fatalf("%s: %d plots, %v", table.Name, len(plots), err)
		}
		for _, p := range plots {
			d := xml.NewDecoder(strings.NewReader(string(p.SVG)))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", p.Caption, err)
				}
			}
			if strings.Contains(string(p.SVG), "NaN") || strings.Contains(string(p.SVG), "Inf") {
				t.Errorf("%s: plot has a coordinate that is no number", p.Caption)
			}
		}
	}
}

// TestReport_OfWhatNoClockCouldTell: a value of 0 leaves its ratio out, of the text, of the page with its logarithmic axis
// and of the JSON, which has neither infinities nor NaN.
func TestReport_OfWhatNoClockCouldTell(t *testing.T) {
	row := result.Row{Label: "one on 1 mutex", Measure: result.TotalCPU, Of: result.Sync2, Against: result.Sync, Target: result.AtMost(0.95),
		Samples: map[string][]float64{result.Sync: {0, 1, 1, 1, 1, 1}, result.Sync2: {1, 1, 1, 1, 1, 0}, result.Again: {0, 0, 0, 0, 0, 0}}}
	row.Evaluate()
	r := &result.Result{Command: "parked", Samples: 6, Tables: []result.Table{{Name: "parked", Title: "Parked", Rows: []result.Row{row}}}}
	var text, page, data bytes.Buffer
	for _, err := range []error{Text(&text, r, TextOptions{Verdicts: true}), HTML(&page, r), r.Write(&data)} {
		if err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(text.String(), "undecided") || strings.Contains(text.String(), "NaN") || strings.Contains(text.String(), "Inf") {
		t.Errorf("want no ratio and no verdict:\n%s", &text)
	}
}

func TestText_ShowsRatiosWithTheirIntervals(t *testing.T) {
	var b bytes.Buffer
	r := sample(10)
	if err := Text(&b, r, TextOptions{Verdicts: true}); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{"Headline", "Grid", "Waits", "Sheet", "19 %", "geometric mean", "channel", "sync/sync", "noise gauge", ">= 0.95x", "met", "step of work is 1.60 ns",
		"turns of 20µs", "targets: ", ".61 .52", fmt.Sprintf("%.2fx", r.Tables[0].Rows[0].Ratio.Median)} {
		if !strings.Contains(out, want) {
			t.Errorf("text lacks %q:\n%s", want, out)
		}
	}
	b.Reset()
	if err := Text(&b, sample(3), TextOptions{}); err != nil || !strings.Contains(b.String(), "of 3 only") || strings.Contains(b.String(), "target") {
		t.Errorf("three rounds without verdicts: %v\n%s", err, b.String())
	}
	b.Reset()
	if err := Text(&b, &result.Result{Interrupted: true}, TextOptions{}); err != nil || !strings.Contains(b.String(), "nothing was measured to the end") {
		t.Errorf("no table: %v\n%s", err, b.String())
	}
}

func TestLayout_Aligns(t *testing.T) {
	got := layout([][]string{{"", "µs"}, {"long name", "1"}, {"x", "100"}})
	if want := "            µs\nlong name    1\nx          100\n"; got != want {
		t.Errorf("layout:\n%s\nwant\n%s", got, want)
	}
}

func TestNanoseconds_KeepThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 ns", 0.5: "0.50 ns", 4.444: "4.44 ns", 12.34: "12.3 ns", 999.4: "999 ns", 999.6: "1.00 µs", 1234: "1.23 µs", 56.7e6: "56.7 ms", 2e9: "2.00 s", 5e12: "5000 s",
	} {
		if got := nanoseconds(ns); got != want || !utf8.ValidString(got) {
			t.Errorf("nanoseconds(%v) = %q, want %q", ns, got, want)
		}
	}
}

func TestRatioTicks_AlwaysMarkOne(t *testing.T) {
	for _, r := range [][2]float64{{0.85, 1.2}, {0.5, 2.2}, {0.01, 1.1}, {0.9, 300}, {1e-5, 1e6}} {
		ticks := ratioTicks{}.Ticks(r[0], r[1])
		one := false
		for _, tick := range ticks {
			one = one || tick.Value == 1
		}
		if !one || len(ticks) < 2 || len(ticks) > 9 {
			t.Errorf("ticks from %v to %v: %v", r[0], r[1], ticks)
		}
	}
}

func TestDecadeTicks_AreAFew(t *testing.T) {
	for _, r := range [][2]float64{{50, 90}, {90, 220}, {10, 2000}, {1e3, 1e8}, {700, 1400}} {
		if ticks := (decadeTicks{}).Ticks(r[0], r[1]); len(ticks) < 2 || len(ticks) > 9 {
			t.Errorf("%d ticks from %v to %v: %v", len(ticks), r[0], r[1], ticks)
		}
	}
}
