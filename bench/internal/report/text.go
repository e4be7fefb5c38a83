// Package report shows results: as text, and as a self-contained page with plots.
package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// TextOptions say what to print.
type TextOptions struct {
	Verdicts bool // print the targets and whether they were reached
}

// Text prints the result: environment, a table each, and what the noise gauge says.
func Text(w io.Writer, r *result.Result, o TextOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Environment)
	if m := method(r); m != "" {
		fmt.Fprintf(&b, "%s\n", m)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n%s (%s)\n", t.Title, t.Note)
		b.WriteString(layout(tableText(t, o)))
	}
	for _, s := range r.Sheets {
		fmt.Fprintf(&b, "\n%s (%s)\n", s.Title, s.Note)
		b.WriteString(layout(append([][]string{s.Columns}, s.Rows...)))
	}
	if c := conclusion(r, o); c != "" {
		fmt.Fprintf(&b, "\n%s\n", c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// method says how the tables were measured.
func method(r *result.Result) string {
	if r.Samples == 0 {
		return ""
	}
	s := fmt.Sprintf("%d interleaved samples of %v each", r.Samples, time.Duration(r.SampleNS))
	for _, t := range r.Tables {
		if len(t.Rows) > 0 && isWait(t.Rows[0].Measure) {
			s += fmt.Sprintf(" (waits: %v, turns of %v)", time.Duration(r.TimedNS), time.Duration(r.TurnNS))
			break
		}
	}
	s += fmt.Sprintf("; took %v", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	return s + fmt.Sprintf("; a step of work is %.2f ns; intervals are 95 %%", r.StepNS)
}

func isWait(m result.Measure) bool { return m == result.WaitP999 || m == result.WaitMax }

// conclusion says what the noise gauge and the targets come to.
func conclusion(r *result.Result, o TextOptions) string {
	var lines []string
	if r.Interrupted {
		lines = append(lines, "interrupted: the tables show the rounds that were complete")
	}
	if g := r.Gauge(); g.Rows > 0 {
		lines = append(lines, fmt.Sprintf("noise gauge, %s against itself: median %.2fx, rows from %.2fx to %.2fx; %d of %d intervals hold 1.00",
			gauged(r), g.Median, g.Lo, g.Hi, g.Holding, g.Rows))
	}
	if len(r.Tables)+len(r.Sheets) == 0 {
		lines = append(lines, "nothing was measured to the end")
	}
	if o.Verdicts && len(r.Tables) > 0 {
		lines = append(lines, fmt.Sprintf("targets: %d met, %d within noise, %d missed, %d undecided",
			r.Count(result.Met), r.Count(result.Noise), r.Count(result.Missed), r.Count(result.Undecided)))
	}
	return strings.Join(lines, "\n")
}

// gauged is what the noise gauge of a result measures twice.
func gauged(r *result.Result) string {
	name := ""
	for _, t := range r.Tables {
		switch _, base := compared(t); name {
		case "", base:
			name = base
		default:
			return "each base"
		}
	}
	return name
}

// tableText returns the cells of the table, header first.
func tableText(t result.Table, o TextOptions) [][]string {
	columns := columnsOf(t, o)
	header := make([]string, len(columns))
	for i, c := range columns {
		header[i] = c.head
	}
	rows := [][]string{header}
	for i := range t.Rows {
		cells := make([]string, len(columns))
		for j, c := range columns {
			cells[j] = c.cell(&t.Rows[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// A column is one column of a table, in text and on the page.
type column struct {
	head string
	cell func(*result.Row) string
}

// columnsOf returns the columns that have something to show.
func columnsOf(t result.Table, o TextOptions) []column {
	measures := map[result.Measure]bool{}
	for _, row := range t.Rows {
		measures[row.Measure] = true
	}
	columns := []column{{"", func(r *result.Row) string { return r.Label }}}
	head := "ratio"
	if len(measures) > 1 {
		columns = append(columns, column{"measure", func(r *result.Row) string { return string(r.Measure) }})
	} else if len(t.Rows) > 0 {
		head = string(t.Rows[0].Measure)
	}
	of, base := compared(t)
	columns = append(columns,
		column{base, func(r *result.Row) string { return absolute(r, r.Against, base) }},
		column{of, func(r *result.Row) string { return absolute(r, r.Of, of) }},
		column{head, func(r *result.Row) string { return ratio(r.Ratio) }},
		column{"interval", func(r *result.Row) string { return interval(r.Ratio) }})
	if o.Verdicts {
		columns = append(columns,
			column{"target", func(r *result.Row) string {
				if r.Target == nil {
					return ""
				}
				return r.Target.String()
			}},
			column{"", func(r *result.Row) string { return string(r.Verdict) }})
	}
	for _, peer := range t.Peers {
		columns = append(columns, column{peer, func(r *result.Row) string { return ratio(r.Peers[peer]) }})
	}
	if o.Verdicts {
		columns = append(columns,
			column{"cpu", func(r *result.Row) string {
				return ratio(stats.Estimate{Median: r.Extra["cpu ns"][r.Of] / r.Extra["cpu ns"][r.BaseName()], N: 1})
			}},
			column{"top half", fairness})
	}
	columns = append(columns, column{base + "/" + base, func(r *result.Row) string {
		return strings.TrimSpace(ratio(r.Gauge) + " " + interval(r.Gauge))
	}})
	return withoutEmpty(columns, t.Rows)
}

// compared names the two that the table's rows compare: "this" if it is another in each row.
func compared(t result.Table) (of, base string) {
	of, base = result.Sync2, result.Sync
	for i := range t.Rows {
		r := &t.Rows[i]
		if i == 0 {
			of, base = r.Of, r.BaseName()
		}
		if r.Of != of {
			of = "this"
		}
		if r.BaseName() != base {
			base = "other"
		}
	}
	return of, base
}

func withoutEmpty(columns []column, rows []result.Row) []column {
	var kept []column
	for _, c := range columns {
		for i := range rows {
			if c.cell(&rows[i]) != "" {
				kept = append(kept, c)
				break
			}
		}
	}
	return kept
}

// fairness is the luckier half's share with both that are compared, of rows with more than one goroutine.
func fairness(r *result.Row) string {
	top := r.Extra["top half"]
	if r.Params["g"] < 2 || top == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", share(top[r.BaseName()]), share(top[r.Of]))
}

// share prints a share of one without the zero before the point.
func share(x float64) string { return strings.TrimPrefix(fmt.Sprintf("%.2f", x), "0") }

// absolute is the value of that name in a column of the given head.
func absolute(r *result.Row, name, head string) string {
	e := r.Values[name]
	if e.N == 0 || r.Mean {
		return ""
	}
	s := nanoseconds(e.Median)
	if r.Measure == result.Rate {
		s = short(1e9/e.Median) + "/s"
	}
	if r.Measure == result.Bytes {
		s = fmt.Sprintf("%.0f B", e.Median)
	}
	if name != head {
		s = name + " " + s
	}
	return s
}

// nanoseconds prints a time with three significant digits and its unit.
func nanoseconds(ns float64) string {
	unit, value := "ns", ns
	for _, u := range []string{"µs", "ms", "s"} {
		if value < 999.5 {
			break
		}
		unit, value = u, value/1000
	}
	digits := 0
	if value > 0 {
		digits = min(2, max(0, 2-int(math.Floor(math.Log10(value)))))
	}
	return fmt.Sprintf("%.*f %s", digits, value, unit)
}

func ratio(e stats.Estimate) string {
	if e.N == 0 || math.IsNaN(e.Median) {
		return ""
	}
	return fmt.Sprintf("%.2fx", e.Median)
}

func interval(e stats.Estimate) string {
	switch {
	case e.N == 0:
		return ""
	case !e.Known():
		return fmt.Sprintf("of %d only", e.N)
	}
	return fmt.Sprintf("%.2f-%.2f", e.Lo, e.Hi)
}

// layout aligns the first column left and the others right, two spaces apart.
func layout(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
