package env

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestKeysAreSortedAndDescribed(t *testing.T) {
	if !slices.IsSortedFunc(keys, func(a, b key) int { return strings.Compare(a.name, b.name) }) {
		t.Error("find needs the table sorted by name")
	}
	for _, k := range keys {
		if k.name == "" || k.allowed == "" || k.effect == "" || k.valid == nil {
			t.Errorf("row %q is incomplete", k.name)
		}
		if !strings.Contains(Usage(), k.name+"="+k.allowed+"\n\t"+k.effect+"\n") {
			t.Errorf("Usage does not explain %s", k.name)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want map[string]string
		errs []string // one for each bad item
	}{
		{"", map[string]string{}, nil},
		{" , ,", map[string]string{}, nil},
		{"domains=llc", map[string]string{"domains": "llc"}, nil},
		{"slots=64,immutable=1", map[string]string{"slots": "64", "immutable": "1"}, nil},
		{" hq.local=128 , asymmetric=0 ", map[string]string{"hq.local": "128", "asymmetric": "0"}, nil},
		{"topology=4x8,hashseed=18446744073709551615", map[string]string{"topology": "4x8", "hashseed": "18446744073709551615"}, nil},
		{"slice=50us,spin=0", map[string]string{"slice": "50us", "spin": "0"}, nil},

		{"domain=llc", map[string]string{}, []string{`env: SYNC2 has no key "domain"; allowed: asymmetric, batch, domains, hashseed, hq.budget, hq.crossings, hq.handovers, hq.keep, hq.local, hq.localtime, hq.patience, hq.streak, hq.votes, immutable, slice, slots, spin, topology`}},
		{"Domains=llc", map[string]string{}, []string{`env: SYNC2 has no key "Domains"`}},
		{"=1", map[string]string{}, []string{`env: SYNC2 has no key ""`}},
		{"domains", map[string]string{}, []string{`env: SYNC2 item "domains" is not key=value`}},
		{"domains=socket", map[string]string{}, []string{`env: SYNC2 key domains cannot be "socket"; allowed: llc, node or none`}},
		{"domains=", map[string]string{}, []string{`env: SYNC2 key domains cannot be ""`}},
		{"domains= llc", map[string]string{}, []string{`env: SYNC2 key domains cannot be " llc"`}},
		{"domains=llc=node", map[string]string{}, []string{`env: SYNC2 key domains cannot be "llc=node"`}},
		{"domains=llc,domains=node", map[string]string{"domains": "llc"}, []string{`env: SYNC2 gives domains twice`}},
		{"domains=x,domains=node,y", map[string]string{"domains": "node"}, []string{`key domains cannot be "x"`, `item "y"`}},
	} {
		got, err := Parse(c.in)
		if !maps.Equal(got, c.want) || got == nil {
			t.Errorf("Parse(%q) = %v, want %v", c.in, got, c.want)
		}
		checkErr(t, c.in, err, c.errs)
	}
}

func checkErr(t *testing.T, in string, err error, want []string) {
	t.Helper()
	if (err == nil) != (len(want) == 0) {
		t.Errorf("Parse(%q): error %v, want %q", in, err, want)
		return
	}
	if err == nil {
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("Parse(%q): %d errors, want %d: %v", in, len(lines), len(want), err)
		return
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("Parse(%q): error %q, want %q", in, lines[i], w)
		}
	}
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ good, bad string }{
		"asymmetric": {"0 1", "2 -1 01 true on"},
		"domains":    {"llc node none", "LLC l3 numa"},
		"hashseed":   {"0 1 18446744073709551615", "-1 +1 1_0 0x1 18446744073709551616 1.0"},
		"hq.local":   {"1 128 1000000", "0 1000001 -5 1e3"},
		"immutable":  {"0 1", "yes"},
		"slice":      {"1us 50us 1ms 1s 0.5ms", "0 50 -1us 999ns 1001ms 1h x"},
		"slots":      {"0 2 4 1024 2147483648", "1 3 6 4294967296 -2"},
		"spin":       {"0 0s 1ns 5us 1s", "5 -1us 2s"},
		"topology":   {"1x1 4x8 2x12x16 1024x8 1x8192 1x1x8192", "4 x 4x 4x0 0x4 -1x2 4x8x 1x1x1x1 1025x1 1x8193 1024x9 64x128x2 99999999999999999999x1 4X8 4x+8"},
	} {
		k, ok := find(name)
		if !ok {
			t.Fatalf("no key %s", name)
		}
		for _, v := range strings.Fields(c.good) {
			if !k.valid(v) {
				t.Errorf("%s=%s is refused", name, v)
			}
		}
		for _, v := range strings.Fields(c.bad) {
			if k.valid(v) {
				t.Errorf("%s=%s is accepted", name, v)
			}
		}
	}
}

func TestParseShape(t *testing.T) {
	for in, want := range map[string]Shape{
		"4x8":     {4, 1, 8},
		"2x12x16": {2, 12, 16},
	} {
		if got, ok := ParseShape(in); !ok || got != want {
			t.Errorf("ParseShape(%q) = %v, %v, want %v", in, got, ok, want)
		}
	}
}

func TestLookupReadsTheVariableOnce(t *testing.T) {
	defer func(p func() (map[string]string, error)) { parsed = p }(parsed)
	parsed = sync.OnceValues(func() (map[string]string, error) { return Parse(os.Getenv(Name)) })

	t.Setenv(Name, "domains=node,slots=3")
	if v, ok := Lookup("domains"); v != "node" || !ok {
		t.Errorf("Lookup(domains) = %q, %v", v, ok)
	}
	if v, ok := Lookup("slots"); v != "" || ok {
		t.Errorf("Lookup(slots) = %q, %v for a value that is not allowed", v, ok)
	}
	if err := Err(); err == nil || !strings.Contains(err.Error(), `slots cannot be "3"`) {
		t.Errorf("Err() = %v", err)
	}
	t.Setenv(Name, "domains=llc")
	if v, _ := Lookup("domains"); v != "node" {
		t.Errorf("Lookup(domains) = %q after the variable changed, want what it was first", v)
	}
}

// FuzzEnv: any text gives values that their keys allow and an error that names
// each other item; what was accepted is accepted again.
func FuzzEnv(f *testing.F) {
	for _, s := range []string{
		"", "topology=4x8", "domains=llc", "slots=64,immutable=1", "hashseed=7,asymmetric=0", "slice=50us,spin=5us",
		"hq.local=128", "topology=0x8", "topology=1x1x1x1", "domains=llc,domains=llc", "a=b,,=,c", " , \x00=\xff", "spin=9223372036854775808ns",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		values, err := Parse(s)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "env: SYNC2 ") {
					t.Errorf("error line %q", line)
				}
			}
		}
		items := 0
		for item := range strings.SplitSeq(s, ",") {
			if strings.TrimSpace(item) != "" {
				items++
			}
		}
		if (err == nil) != (items == len(values)) {
			t.Errorf("%d items, %d values, error %v", items, len(values), err)
		}
		var again []string
		for name, value := range values {
			if k, ok := find(name); !ok || !k.valid(value) {
				t.Errorf("accepted %s=%q", name, value)
			}
			again = append(again, name+"="+value)
		}
		if v, err := Parse(strings.Join(again, ",")); err != nil || !maps.Equal(v, values) {
			t.Errorf("%q again: %v, %v", again, v, err)
		}
	})
}
