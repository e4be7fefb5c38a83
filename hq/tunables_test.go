package hq

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/env"
)

func TestSetTunables_RefusesNonsenseByName(t *testing.T) {
	before := CurrentTunables()
	for _, c := range []struct {
		change func(*Tunables)
		want   string
	}{
		{func(u *Tunables) { u.Local = 0 }, "hq: Tunables.Local cannot be 0; allowed: a number from 1 to 1000000"},
		{func(u *Tunables) { u.Local = -1 }, "hq: Tunables.Local cannot be -1; allowed: "},
		{func(u *Tunables) { u.LocalTime = 0 }, "hq: Tunables.LocalTime cannot be 0s; allowed: a duration such as 50us, from 1us to 1s"},
		{func(u *Tunables) { u.HandOvers = 1_000_001 }, "hq: Tunables.HandOvers cannot be 1000001; allowed: "},
		{func(u *Tunables) { u.Crossings = -1 }, "hq: Tunables.Crossings cannot be -1; allowed: "},
		{func(u *Tunables) { u.Streak = 1 << 30 }, "hq: Tunables.Streak cannot be 1073741824; allowed: "},
		{func(u *Tunables) { u.Keep = -5 }, "hq: Tunables.Keep cannot be -5; allowed: "},
		{func(u *Tunables) { u.Votes = 0 }, "hq: Tunables.Votes cannot be 0; allowed: "},
		{func(u *Tunables) { u.Budget = time.Minute }, "hq: Tunables.Budget cannot be 1m0s; allowed: "},
		{func(u *Tunables) { u.Patience = time.Nanosecond }, "hq: Tunables.Patience cannot be 1ns; allowed: "},
	} {
		u := before
		c.change(&u)
		if err := SetTunables(u); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("SetTunables(%+v): %v, want %q", u, err, c.want)
		}
		if now := CurrentTunables(); now != before {
			t.Errorf("a refused change left %+v", now)
		}
	}
}

func TestSetTunables_TakesAndGivesBackEachField(t *testing.T) {
	before := CurrentTunables()
	defer func() {
		if err := SetTunables(before); err != nil {
			t.Error(err)
		}
	}()
	u := Tunables{Local: 2, LocalTime: 3 * time.Microsecond, HandOvers: 4, Crossings: 5, Streak: 6, Keep: 7, Votes: 8,
		Budget: 9 * time.Microsecond, Patience: 10 * time.Microsecond}
	if err := SetTunables(u); err != nil {
		t.Fatal(err)
	}
	if now := CurrentTunables(); now != u {
		t.Errorf("%+v in force, want %+v", now, u)
	}
}

// Each field has a key of the environment variable, which allows its default.
func TestTunables_HaveKeys(t *testing.T) {
	u := defaults
	fields := u.fields()
	if n := reflect.TypeFor[Tunables]().NumField(); len(fields) != n {
		t.Fatalf("%d fields are listed, there are %d", len(fields), n)
	}
	for _, f := range fields {
		value := f.String()
		if _, err := env.Parse(f.key + "=" + value); err != nil {
			t.Error(err)
		}
		f.set(value)
	}
	if u != defaults {
		t.Errorf("%+v, want %+v", u, defaults)
	}
}
