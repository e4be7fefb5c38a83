package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hqsync/hqsync/internal/numavm/plan"
)

// A verdict is formed from the lines that the guest prints.
type verdict struct {
	out     io.Writer
	verbose bool
	jobs    []*outcome // as planned
	current *outcome   // the job that runs, or nil
	done    bool       // the guest has said that nothing follows
	wrong   []error
}

// An outcome is what is known of a job.
type outcome struct {
	name    string
	begun   bool
	ended   bool
	status  int
	lines   []string
	passed  int
	skipped int
	failed  int
	pass    bool // the line PASS
	nothing bool // no test was chosen
}

func newVerdict(p plan.Plan, out io.Writer, verbose bool) *verdict {
	v := &verdict{out: out, verbose: verbose}
	for _, j := range p.Jobs {
		v.jobs = append(v.jobs, &outcome{name: j.Name})
	}
	return v
}

// line takes in one line.
func (v *verdict) line(text string) {
	if v.verbose {
		fmt.Fprintln(v.out, text)
	}
	if name, ok := plan.IsBegin(text); ok {
		v.begin(name)
	} else if name, status, ok := plan.IsEnd(text); ok {
		v.end(name, status, text)
	} else if text == plan.Done {
		v.done = true
	} else if v.current != nil {
		v.current.line(text)
	}
}

func (v *verdict) begin(name string) {
	i := slices.IndexFunc(v.jobs, func(o *outcome) bool { return o.name == name && !o.begun })
	if i < 0 || v.current != nil {
		v.wrong = append(v.wrong, fmt.Errorf("a job %s began that was not next", name))
		return
	}
	v.current = v.jobs[i]
	v.current.begun = true
}

func (v *verdict) end(name string, status int, text string) {
	o := v.current
	if o == nil || o.name != name {
		v.wrong = append(v.wrong, fmt.Errorf("a job %s ended that had not begun", name))
		return
	}
	v.current = nil
	o.ended, o.status = true, status
	fmt.Fprintf(v.out, "%s: %d passed, %d skipped, %d failed\n", text, o.passed, o.skipped, o.failed)
	if err := o.err(); err != nil && !v.verbose {
		fmt.Fprintln(v.out, strings.Join(o.lines, "\n"))
	}
}

// line takes in a line of the job's, which prints what go test -v does. Indented
// lines are of subtests, or of children that a test has started.
func (o *outcome) line(text string) {
	o.lines = append(o.lines, text)
	switch {
	case strings.HasPrefix(text, "--- PASS: "):
		o.passed++
	case strings.HasPrefix(text, "--- SKIP: "):
		o.skipped++
	case strings.HasPrefix(text, "--- FAIL: "):
		o.failed++
	case text == "PASS":
		o.pass = true
	case text == "testing: warning: no tests to run":
		o.nothing = true
	}
}

// err returns what is wrong with the job's outcome.
func (o *outcome) err() error {
	switch {
	case !o.ended:
		return fmt.Errorf("%s did not end", o.name)
	case o.name == control && o.status == controlStatus:
		return nil
	case o.name == control:
		return fmt.Errorf("%s ended with status %d, not %d: failures are not seen", o.name, o.status, controlStatus)
	case o.status != 0 || o.failed != 0 || !o.pass:
		return fmt.Errorf("%s ended with status %d, %d tests failed, said PASS: %v", o.name, o.status, o.failed, o.pass)
	case o.nothing || o.passed == 0:
		return fmt.Errorf("%s ran no test", o.name)
	}
	return nil
}

// err returns what is wrong with the run, or nil.
func (v *verdict) err() error {
	wrong := v.wrong
	for _, o := range v.jobs {
		wrong = append(wrong, o.err())
	}
	if !v.done {
		wrong = append(wrong, errors.New("the guest did not come to its end"))
	}
	return errors.Join(wrong...)
}

// dump prints what the job that was running has printed.
func (v *verdict) dump() {
	if v.current != nil && !v.verbose {
		fmt.Fprintln(v.out, strings.Join(v.current.lines, "\n"))
	}
}
