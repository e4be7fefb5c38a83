package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hqsync/hqsync/bench/internal/report"
	"github.com/hqsync/hqsync/bench/internal/result"
)

type showCmd struct {
	File    string   `arg:"" optional:"" help:"What a command wrote as JSON. Default report.json of bench/out."`
	Section []string `arg:"" optional:"" help:"Sections of all.json, such as headline. Default all."`
}

func (c *showCmd) Help() string {
	return `Prints a result again that a command has kept as JSON, as that command printed it. README quotes a report in this form.

Example: go run ./bench show bench/out/all.json headline mutex

A ratio means the same as in the command that measured it; nothing is measured here. Of the common flags -check applies: it
prints the targets of the headline too.`
}

func (c *showCmd) Run(b *bench) error {
	if err := b.without("show", "d", "samples", "procs", "filter", "json", "out"); err != nil {
		return err
	}
	file := c.File
	if file == "" {
		file = filepath.Join(defaultOut(), "report.json")
	}
	f, err := os.Open(file)
	if err != nil {
		return usagef("%w; name a file that -json or -o wrote", err)
	}
	defer f.Close()
	results, err := result.ReadAll(f)
	if err != nil {
		return usagef("%w (%s)", err, file)
	}
	shown, err := chosen(results, c.Section)
	if err != nil {
		return usagef("%s: %w", file, err)
	}
	for _, r := range shown {
		if err := report.Text(b.stdout, r, b.textOptions(r)); err != nil {
			return err
		}
	}
	return nil
}

// chosen returns the results of those commands, or all.
func chosen(results []*result.Result, names []string) ([]*result.Result, error) {
	var have []string
	for _, r := range results {
		have = append(have, r.Command)
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("no section %s; there are: %s", name, strings.Join(have, ", "))
		}
	}
	return slices.DeleteFunc(results, func(r *result.Result) bool {
		return len(names) > 0 && !slices.Contains(names, r.Command)
	}), nil
}
