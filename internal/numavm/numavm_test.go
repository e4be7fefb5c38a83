package main

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/numavm/plan"
)

// planned is a plan of the control and one suite.
func planned() plan.Plan { return planFor([]suite{{name: "hq"}}, options{}) }

// transcript is what the guest prints when all is well.
func transcript() []string {
	return []string{
		plan.Begin(control), "flag provided but not defined", plan.End(control, controlStatus, time.Second),
		plan.Begin("hq"), "=== RUN   TestA", "--- PASS: TestA (0.00s)", "    --- FAIL: of a child", "PASS", plan.End("hq", 0, time.Second),
		plan.Done,
	}
}

func judge(lines []string) error {
	v := newVerdict(planned(), io.Discard, false)
	for _, line := range lines {
		v.line(line)
	}
	return v.err()
}

func TestVerdict(t *testing.T) {
	if err := judge(transcript()); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(lines []string) []string{
		"empty":                        func([]string) []string { return nil },
		"ends early":                   func(l []string) []string { return l[:len(l)-1] },
		"suite does not end":           func(l []string) []string { return append(l[:8:8], plan.Done) },
		"suite does not begin":         func(l []string) []string { return append(l[:3:3], plan.Done) },
		"no control":                   func(l []string) []string { return l[3:] },
		"control passes":               func(l []string) []string { l[2] = plan.End(control, 0, 0); return l },
		"suite fails":                  func(l []string) []string { l[8] = plan.End("hq", 1, 0); return l },
		"suite cannot be started":      func(l []string) []string { l[8] = plan.End("hq", -1, 0); return l },
		"a test fails, status 0":       func(l []string) []string { l[6] = "--- FAIL: TestB (0.00s)"; return l },
		"no PASS":                      func(l []string) []string { l[7] = "exit"; return l },
		"no tests":                     func(l []string) []string { l[6] = "testing: warning: no tests to run"; return l },
		"all tests skipped":            func(l []string) []string { l[5] = "--- SKIP: TestA (0.00s)"; return l },
		"suite runs twice":             func(l []string) []string { return append(l[:9:9], l[3:]...) },
		"end of another suite":         func(l []string) []string { l[8] = plan.End("sync2", 0, 0); return l },
		"a suite that was not planned": func(l []string) []string { l[3], l[8] = plan.Begin("sync2"), plan.End("sync2", 0, 0); return l },
	} {
		if err := judge(edit(transcript())); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

// The output of a suite that fails is shown, that of one that passes only on
// demand.
func TestVerdict_ShowsWhatFailed(t *testing.T) {
	lines := transcript()
	for _, c := range []struct {
		status  int
		verbose bool
		shown   bool
	}{{0, false, false}, {0, true, true}, {1, false, true}, {1, true, true}} {
		var out bytes.Buffer
		v := newVerdict(planned(), &out, c.verbose)
		lines[8] = plan.End("hq", c.status, time.Second)
		for _, line := range lines {
			v.line(line)
		}
		if n := strings.Count(out.String(), "RUN   TestA"); (n == 1) != c.shown || n > 1 {
			t.Errorf("%+v: shown %d times\n%s", c, n, out.String())
		}
	}
}

// The archive has a header of 110 bytes for each entry and is padded to 4 bytes
// behind names and contents.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.file("init", 0o755, []byte("12345"))
	a.file("src/hq/doc.go", 0o644, nil)
	a.file("src/hq/lock.go", 0o644, []byte("1234"))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	type entry struct{ name, mode, content string }
	var got []entry
	for rest := b.Bytes(); len(rest) > 0; {
		if len(rest)%4 != 0 || string(rest[:6]) != "070701" {
			t.Fatalf("no header at %d: %.20q", b.Len()-len(rest), rest)
		}
		names, size := hex(t, rest[94:102]), hex(t, rest[54:62])
		e := entry{mode: string(rest[14:22])}
		e.name, rest = cut(rest, 110+names)
		e.name = strings.TrimSuffix(e.name[110:], "\x00")
		e.content, rest = cut(rest, size)
		got = append(got, e)
	}
	want := []entry{
		{"init", "000081ed", "12345"}, {"src", "000041ed", ""}, {"src/hq", "000041ed", ""},
		{"src/hq/doc.go", "000081a4", ""}, {"src/hq/lock.go", "000081a4", "1234"}, {"TRAILER!!!", "00000000", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, e := range got {
		if e != want[i] {
			t.Errorf("entry %d is %q, want %q", i, e, want[i])
		}
	}
}

func hex(t *testing.T, digits []byte) int {
	n, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// cut returns the first n bytes and what is behind them and their padding.
func cut(b []byte, n int) (string, []byte) { return string(b[:n]), b[n+(-n&3):] }
