package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/hqsync/hqsync/bench/internal/result"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

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
	Legend  []legend
	SVG     template.HTML
}

// legend is a name in the colour of the style sheet's class.
type legend struct{ Class, Name string }

// HTML writes the results as one page that needs nothing else: no script, no font, no image from elsewhere.
func HTML(w io.Writer, results ...*result.Result) error {
	type part struct {
		Result     *result.Result
		Method     string
		Conclusion string
		Settings   map[string]string
		Sections   []section
	}
	var parts []part
	for _, r := range results {
		o := TextOptions{Verdicts: true}
		p := part{Result: r, Method: method(r), Conclusion: conclusion(r, o), Settings: r.Environment.Settings}
		for _, t := range r.Tables {
			s, err := sectionOf(t, o)
			if err != nil {
				return err
			}
			p.Sections = append(p.Sections, s)
		}
		parts = append(parts, p)
	}
	return page.Execute(w, parts)
}

func sectionOf(t result.Table, o TextOptions) (section, error) {
	plots, err := plotsOf(t)
	if err != nil {
		return section{}, err
	}
	text := tableText(t, o)
	s := section{ID: t.Name, Title: t.Title, Note: t.Note, Head: text[0], Plots: plots}
	for i, cells := range text[1:] {
		row := pageRow{Verdict: t.Rows[i].Verdict, Mean: t.Rows[i].Mean}
		for j, cell := range cells {
			row.Cells = append(row.Cells, pageCell{Head: s.Head[j], Text: cell})
		}
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}
