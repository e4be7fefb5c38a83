package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
)

// A plan is all that one run will change in a module.
type plan struct {
	*module
	dir   string // the module's root as the user calls it
	to    direction
	edits []edit // go.mod among them, if it changes
	found []finding

	hqsyncGo string // go line of the checkout that -replace names
}

// A finding is one changed import, for the user to read.
type finding struct {
	rel string
	change
	generated bool
}

// planRewrite reads and parses every file of m.
func planRewrite(m *module, dir string, d direction) (*plan, error) {
	p := &plan{module: m, dir: dir, to: d}
	var broken []error
	for _, rel := range m.files {
		if err := p.add(rel); err != nil {
			broken = append(broken, err)
		}
	}
	if len(broken) > 0 {
		broken = append(broken, fmt.Errorf("nothing written: errors in %s", count(len(broken), "file", "files")))
	}
	return p, errors.Join(broken...)
}

func (p *plan) add(rel string) error {
	src, err := os.ReadFile(filepath.Join(p.root, rel))
	if err != nil {
		return err
	}
	r, err := rewrite(p.shown(rel), src, p.to)
	if err != nil || len(r.changes) == 0 {
		return err
	}
	p.edits = append(p.edits, edit{rel, src, r.src})
	for _, c := range r.changes {
		p.found = append(p.found, finding{rel, c, r.generated})
	}
	return nil
}

// shown returns the path by which the user knows a file of the module.
func (p *plan) shown(rel string) string {
	return filepath.Join(p.dir, filepath.FromSlash(rel))
}

func (p *plan) printPatch(w io.Writer) {
	for _, e := range p.edits {
		w.Write(diff.Diff("a/"+e.rel, e.old, "b/"+e.rel, e.new))
	}
}

func (p *plan) printChanges(w io.Writer) {
	for _, f := range p.found {
		note := ""
		if f.generated {
			note = " (generated file)"
		}
		fmt.Fprintf(w, "%s:%d: %s -> %s%s\n", p.shown(f.rel), f.line, f.old, f.new, note)
	}
}

// printNotes says what was left alone, sums up, and names the commands that remain for the user.
func (p *plan) printNotes(w io.Writer, opts options) {
	for _, s := range p.skipped {
		if n := p.importers(s, p.to.from); n > 0 {
			fmt.Fprintf(w, "sync2fix: left alone: %s (%s): %s %s\n", p.shown(s.path), s.reason,
				count(n, "file imports", "files import"), p.to.from)
		}
	}
	fmt.Fprintf(w, "sync2fix: %s\n", p.summary(opts.DryRun))
	if commands := p.commands(opts); len(commands) > 0 && len(p.edits) > 0 && !opts.DryRun {
		fmt.Fprintf(w, "sync2fix: now run in %s:\n", p.dir)
		for _, c := range commands {
			fmt.Fprintf(w, "\t%s\n", c)
		}
	}
}

func (p *plan) summary(dryRun bool) string {
	files, generated := map[string]bool{}, map[string]bool{}
	for _, f := range p.found {
		files[f.rel] = true
		if f.generated {
			generated[f.rel] = true
		}
	}
	if len(files) == 0 {
		return fmt.Sprintf("nothing to rewrite: no import of %s in the %s of %s",
			p.to.from, count(len(p.files), "Go file", "Go files"), p.gomod.Module.Mod.Path)
	}
	verb, note := "rewrote", ""
	if dryRun {
		verb = "would rewrite"
	}
	if len(generated) > 0 {
		note = fmt.Sprintf(" (%d generated)", len(generated))
	}
	return fmt.Sprintf("%s %s of %s in %s%s of %s", verb, count(len(p.found), "import", "imports"), p.to.from,
		count(len(files), "file", "files"), note, p.gomod.Module.Mod.Path)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
