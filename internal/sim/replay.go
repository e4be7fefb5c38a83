//go:build sim

package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// token says that something happened n times in a row.
type token struct {
	kind optKind
	id   int
	n    int
}

// record appends to the schedule.
func (e *engine) record(k optKind, id int) {
	if n := len(e.rec); n > 0 && e.rec[n-1].kind == k && e.rec[n-1].id == id {
		e.rec[n-1].n++
		return
	}
	e.rec = append(e.rec, token{k, id, 1})
}

// spell writes a schedule as words like T0*12 d0 T1: thread 0 for 12 steps, a drain of its buffer, thread 1 for one step.
func spell(s []token) string {
	var b strings.Builder
	for i, t := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%c%d", optLetters[t.kind], t.id)
		if t.n != 1 {
			fmt.Fprintf(&b, "*%d", t.n)
		}
	}
	return b.String()
}

// parse reads what spell writes.
func parse(s string) ([]token, error) {
	var out []token
	for _, f := range strings.Fields(s) {
		k := strings.IndexByte(optLetters, f[0])
		id, times, many := strings.Cut(f[1:], "*")
		t := token{kind: optKind(k), n: 1}
		var err error
		if t.id, err = strconv.Atoi(id); err == nil && many {
			t.n, err = strconv.Atoi(times)
		}
		if k < 0 || err != nil || t.id < 0 || t.n < 1 {
			return nil, fmt.Errorf("sim: %q in a schedule: want a letter of %q, a number and perhaps *times", f, optLetters)
		}
		out = append(out, t)
	}
	return out, nil
}

type replay struct{ schedule string }

// Replay runs one schedule, as a failure printed it. Where the schedule does not fit the program any more, it is followed as
// far as it does: a thread that cannot run is passed over, and after the end the thread that ran last goes on.
func Replay(schedule string) Strategy { return replay{schedule} }

func (r replay) String() string { return "replay" }

func (r replay) begin(e *engine) search {
	s, err := parse(r.schedule)
	if err != nil {
		panic(err.Error())
	}
	e.bound, e.quiet = Unbounded, false
	return &replaySearch{script: s}
}

type replaySearch struct {
	script []token
	i, n   int // script[i] has been followed n times
	ran    bool
}

func (r *replaySearch) another() bool {
	first := !r.ran
	r.ran, r.i, r.n = true, 0, 0
	return first
}

func (r *replaySearch) complete() bool { return false }
func (r *replaySearch) states() int    { return 0 }
func (r *replaySearch) seed() uint64   { return 0 }

// follow consumes one repetition of the present token.
func (r *replaySearch) follow() {
	if r.n++; r.n >= r.script[r.i].n {
		r.i, r.n = r.i+1, 0
	}
}

func (r *replaySearch) pick(e *engine) int {
	for ; r.i < len(r.script); r.i, r.n = r.i+1, 0 {
		t := &r.script[r.i]
		for i, o := range e.opts {
			if o.kind == t.kind && int(o.id) == t.id {
				r.follow()
				return i
			}
		}
	}
	return 0
}

func (r *replaySearch) value(_ *engine, n int) int {
	if r.i < len(r.script) && r.script[r.i].kind == optValue {
		k := r.script[r.i].id
		r.follow()
		return min(k, n-1)
	}
	return 0
}
