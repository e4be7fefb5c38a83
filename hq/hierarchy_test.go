//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hqsync/hqsync/topology"
)

// onMachine makes Locks see a machine of so many domains until the end of the
// test. Ps take turns in running in them.
func onMachine(t *testing.T, domains int) {
	t.Helper()
	m, err := topology.Synthetic(topology.Shape{Packages: domains, CoresPerLLC: 4})
	if err != nil {
		t.Fatal(err)
	}
	before := located.Load()
	located.Store(m)
	t.Cleanup(func() { located.Store(before) })
	if got := realDomains(); got != domains {
		t.Fatalf("%d domains, want %d", got, domains)
	}
}

// tune changes the tunables until the end of the test.
func tune(t *testing.T, change func(*Tunables)) {
	t.Helper()
	before := CurrentTunables()
	after := before
	change(&after)
	if err := SetTunables(after); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := SetTunables(before); err != nil {
			t.Error(err)
		}
	})
}

func withProcs(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// Whatever the modes and their changes, sections exclude each other and every
// node and roster comes back.
func TestModesUnderStress(t *testing.T) {
	d := 300 * time.Millisecond
	if testing.Short() {
		d = 50 * time.Millisecond
	}
	for _, domains := range []int{2, 3, 8} {
		for name, change := range map[string]func(*Tunables){
			"sticky":     func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak, u.Local = 0, 0, 0, 2 },
			"changeable": func(u *Tunables) { u.HandOvers, u.Crossings, u.Streak, u.Local, u.Keep, u.Votes = 0, 0, 0, 2, 1e6, 1 },
			"hurried": func(u *Tunables) {
				u.HandOvers, u.Crossings, u.Streak, u.Keep, u.Budget = 0, 0, 0, 1e6, time.Microsecond
			},
		} {
			t.Run(fmt.Sprintf("domains=%d/%s", domains, name), func(t *testing.T) {
				onMachine(t, domains)
				tune(t, change)
				withProcs(t, 8)
				before := ReadStats()
				l := new(Lock)
				for range 3 {
					stress(t, 32, d/3, l, func() { pause(20) })
				}
				t.Logf("%+v", ReadStats())
				checkQuiet(t, l)
				l.SetHQ(false)
				checkWord(t, "SetHQ", l, qOnly|l.word.Load()&parked)
				if s := ReadStats(); s.InHQ != 0 || s.Inflations-before.Inflations != s.Deflations-before.Deflations {
					t.Errorf("after the lock has left mode HQ: %+v, before: %+v", s, before)
				}
			})
		}
	}
}
