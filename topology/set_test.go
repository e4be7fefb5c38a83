package topology

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseCPUList(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"\n", ""},
		{"0", "0"},
		{"0-0", "0"},
		{"0-3\n", "0-3"},
		{" 0-3,8,10-11 \n", "0-3,8,10-11"},
		{"63-65,127-128", "63-65,127-128"},
		{"11,10,8,0-3", "0-3,8,10-11"}, // the kernel does not print these two
		{"0-5,2-9,3", "0-9"},
		{"007", "7"},
		{"8191", "8191"},
		{"0-8191", "0-8191"},
	} {
		s, err := ParseCPUList(c.in)
		if err != nil || s.String() != c.want {
			t.Errorf("ParseCPUList(%q) = %q, %v, want %q", c.in, s, err, c.want)
		}
	}
	for in, want := range map[string]string{
		",":                      `item "" of ",": a number is missing`,
		"0,":                     `item "" of "0,"`,
		"0,,2":                   `item "" of "0,,2"`,
		"-3":                     `item "-3" of "-3": a number is missing`,
		"3-":                     `a number is missing`,
		"1-2-3":                  `"2-3" is not a number`,
		"5-2":                    `item "5-2" of "5-2" ends before it starts`,
		"+1":                     `"+1" is not a number`,
		"0x1":                    `"0x1" is not a number`,
		"1 ,2":                   `"1 " is not a number`,
		"0-15:2/4":               `"15:2/4" is not a number`,
		"all":                    `"all" is not a number`,
		"(null)":                 `"(null)" is not a number`,
		"0\x00":                  `is not a number`,
		"8192":                   `8192 is above the limit 8191`,
		"0-4294967295":           `4294967295 is above the limit 8191`,
		"99999999999999999999":   `99999999999999999999 is above the limit 8191`,
		strings.Repeat("9", 100): `9999999999999999999999999999999999999999... is above the limit 8191`,
	} {
		s, err := ParseCPUList(in)
		if err == nil || !strings.HasPrefix(err.Error(), "topology: cpu list: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseCPUList(%q) = %q, %v, want an error with %q", in, s, err, want)
		}
	}
}

func TestSet(t *testing.T) {
	var zero Set
	a, b := setOf(1, 2, 3, 64, 200), setOf(3, 4, 64)
	for _, c := range []struct {
		what string
		got  Set
		want string
	}{
		{"zero", zero, ""},
		{"and", a.and(b), "3,64"},
		{"or", a.or(b), "1-4,64,200"},
		{"minus", a.minus(b), "1-2,200"},
		{"minus the longer", b.minus(a), "4"},
		{"range", rangeOf(62, 66), "62-66"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if got := slices.Collect(a.All()); !slices.Equal(got, []int{1, 2, 3, 64, 200}) {
		t.Errorf("All: %v", got)
	}
	for id := range a.All() {
		if id != 1 {
			t.Errorf("All goes on to %d after its loop has been left", id)
		}
		break
	}
	if a.Len() != 5 || a.Min() != 1 || a.Max() != 200 || a.Empty() {
		t.Errorf("Len %d, Min %d, Max %d, Empty %v", a.Len(), a.Min(), a.Max(), a.Empty())
	}
	if zero.Len() != 0 || zero.Min() != Unknown || zero.Max() != Unknown || !zero.Empty() || !a.minus(a).Empty() {
		t.Error("an empty set is not empty")
	}
	if !a.Has(200) || a.Has(199) || a.Has(-1) || a.Has(math.MaxInt) || zero.Has(0) {
		t.Error("Has is wrong")
	}
	if !a.minus(setOf(200)).Equal(setOf(1, 2, 3, 64)) || a.Equal(b) || b.Equal(a) || !zero.Equal(a.minus(a)) {
		t.Error("Equal is wrong")
	}
}

// FuzzCPUList: any text is a set that prints as the kernel would, or an error that
// names what is wrong.
func FuzzCPUList(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8,10-11\n", "5-2", "0,,1", "0-15:2/4", "all", "8191", "8192", "0-4294967295", "-1", "1-2-3", "63-64", "1,1", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		s, err := ParseCPUList(list)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "topology: cpu list: item ") || !s.Empty() {
				t.Errorf("ParseCPUList(%q) = %q, %v", list, s, err)
			}
			return
		}
		// What was accepted has no characters but those of the format.
		if strings.Trim(strings.TrimSpace(list), "0123456789,-") != "" {
			t.Errorf("ParseCPUList(%q) = %q", list, s)
		}
		again, err := ParseCPUList(s.String())
		if err != nil || !again.Equal(s) {
			t.Errorf("%q printed as %q is read as %q, %v", list, s, again, err)
		}
		// The printed form is the shortest: ranges are ascending and do not touch.
		ids := slices.Collect(s.All())
		runs := 0
		for i, id := range ids {
			if i == 0 || id != ids[i-1]+1 {
				runs++
			}
		}
		if len(ids) != s.Len() || !slices.IsSorted(ids) || len(ids) > 0 && strings.Count(s.String(), ",")+1 != runs {
			t.Errorf("%q has %d ids in %d runs, prints %q", list, len(ids), runs, s)
		}
	})
}
