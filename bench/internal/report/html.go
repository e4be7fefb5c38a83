package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/hqsync/hqsync/bench/internal/result"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"seconds": seconds}).Parse(pageText))

// seconds is how long all parts took.
func seconds(parts []part) string {
	sum := 0.0
	for _, p := range parts {
		sum += p.Result.Seconds
	}
	return fmt.Sprintf("%.0f s", sum)
}

// section is a table as the page shows it.
type section struct {
	ID, Title, Note string
	Plots           []plotted
	Head            []string
	Rows            []pageRow
}

type pageRow struct {
	Cells   []pageCell
	Verdict result.Verdict
	Mean    bool
}

// pageCell carries its column's head: in a narrow window the row becomes a list of both.
type pageCell struct{ Head, Text string }

type plotted struct {
	Caption string
	Unit    string // of the upright axis, if its labels do not have it
	Legend  []legend
	SVG     template.HTML
}

// legend is a name in the colour of the style sheet's class.
type legend struct{ Class, Name string }

// part is what the page shows of one result.
type part struct {
	Result     *result.Result
	Method     string
	Conclusion string
	Sections   []section
}

// Overview is what the part comes to, in columns: targets, the noise gauge, time.
func (p part) Overview() []pageCell {
	count := func(v result.Verdict) string {
		if n := p.Result.Count(v); n > 0 {
			return fmt.Sprint(n)
		}
		return ""
	}
	gauge := ""
	if g := p.Result.Gauge(); g.Rows > 0 {
		gauge = fmt.Sprintf("%.2fx", g.Median)
	}
	took := time.Duration(p.Result.Seconds * float64(time.Second)).Round(time.Second)
	return []pageCell{
		{"met", count(result.Met)}, {"within noise", count(result.Noise)}, {"missed", count(result.Missed)}, {"sync/sync", gauge}, {"took", took.String()},
	}
}

// add adds a section, whose id is then unique in the page.
func (p *part) add(s section) {
	s.ID = p.Result.Command + "." + s.ID
	p.Sections = append(p.Sections, s)
}

// HTML writes the results as one page that needs nothing else: no script, no font, no image from elsewhere. The
// environment is that of the first.
func HTML(w io.Writer, results ...*result.Result) error {
	var parts []part
	for _, r := range results {
		o := TextOptions{Verdicts: true}
		p := part{Result: r, Method: method(r), Conclusion: conclusion(r, o)}
		for _, t := range r.Tables {
			s, err := sectionOf(t, o)
			if err != nil {
				return err
			}
			p.add(s)
		}
		for _, sheet := range r.Sheets {
			s, err := sectionOfSheet(sheet)
			if err != nil {
				return err
			}
			p.add(s)
		}
		parts = append(parts, p)
	}
	return page.Execute(w, parts)
}

func sectionOfSheet(sheet result.Sheet) (section, error) {
	s := section{ID: sheet.Name, Title: sheet.Title, Note: sheet.Note, Head: sheet.Columns}
	for _, p := range sheet.Plots {
		drawn, err := drawPlot(p)
		if err != nil {
			return section{}, err
		}
		s.Plots = append(s.Plots, drawn)
	}
	for _, cells := range sheet.Rows {
		s.Rows = append(s.Rows, pageRow{Cells: pageCells(s.Head, cells)})
	}
	return s, nil
}

func pageCells(head, texts []string) []pageCell {
	var cells []pageCell
	for i, text := range texts {
		cells = append(cells, pageCell{Head: head[i], Text: text})
	}
	return cells
}

func sectionOf(t result.Table, o TextOptions) (section, error) {
	plots, err := plotsOf(t)
	if err != nil {
		return section{}, err
	}
	text := tableText(t, o)
	s := section{ID: t.Name, Title: t.Title, Note: t.Note, Head: text[0], Plots: plots}
	for i, cells := range text[1:] {
		s.Rows = append(s.Rows, pageRow{Verdict: t.Rows[i].Verdict, Mean: t.Rows[i].Mean, Cells: pageCells(s.Head, cells)})
	}
	return s, nil
}
