package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Bundle is what several commands measured, one after another.
type Bundle struct {
	Format      int       `json:"format"`
	Command     string    `json:"command"`
	Started     time.Time `json:"started"`
	Seconds     float64   `json:"seconds"`
	Interrupted bool      `json:"interrupted"`
	Results     []*Result `json:"results"`
}

// Write writes the bundle as JSON.
func (b *Bundle) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	return enc.Encode(b)
}

// ReadAll reads the results of a bundle, or a single one.
func ReadAll(src io.Reader) ([]*Result, error) {
	text, err := io.ReadAll(src)
	if err != nil {
		return nil, err
	}
	var b Bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("bench: not a result: %w", err)
	}
	if b.Results == nil {
		r, err := Read(bytes.NewReader(text))
		return []*Result{r}, err
	}
	return b.Results, readable(b.Format) // all are of the version that put them together
}

// A Sheet is a section of a report that compares something else than sync2 with sync: text in columns, and plots.
type Sheet struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Note    string     `json:"note"` // what the rows are and how to read them
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"` // as many cells as there are columns; the first column names the row
	Plots   []Plot     `json:"plots,omitempty"`
}

// A Plot shows series of points over one axis.
type Plot struct {
	Caption string   `json:"caption"`
	X       Axis     `json:"x"`
	Y       Axis     `json:"y"`
	Series  []Series `json:"series"`
}

// An Axis has a name with its unit.
type Axis struct {
	Name string `json:"name"`
	Log  bool   `json:"log,omitempty"` // all values are above 0
	// Names, if not empty, stand at 0, 1, 2... instead of numbers.
	Names []string `json:"names,omitempty"`
}

// A Series is a line of a plot. Lo and Hi, if there are any, are an interval for each point.
type Series struct {
	Name   string    `json:"name"`
	X      []float64 `json:"x"`
	Y      []float64 `json:"y"`
	Lo     []float64 `json:"lo,omitempty"`
	Hi     []float64 `json:"hi,omitempty"`
	Dashed bool      `json:"dashed,omitempty"` // of another source than the solid lines, such as published figures
}
