//go:build linux && amd64 && gc && go1.26 && !go1.28 && !purego && !race && !sim && !sync2_std

package sync2_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQuietUnlock_StoresBetweenTheLoadsOfTag reads the machine code of a call site: the store that unlocks a quiet mutex
// is a plain one, and stays between the two loads of tag. With either of them moved across it, or merged with the other,
// wake-ups get lost (mutex.go, T10 and the setter's look).
func TestQuietUnlock_StoresBetweenTheLoadsOfTag(t *testing.T) {
	g := needGo(t)
	t.Parallel()
	m := g.program(t, ours, "unlock.go")
	exe := m.build(t, nil, buildFlags()...)
	var stores, whole []string
	// In the caller if Unlock inlines, else in Unlock itself.
	for _, function := range []string{`^main\.unlock$`, `sync2\.\(\*Mutex\)\.Unlock$`} {
		r := m.run(t, time.Minute, nil, "tool", "objdump", "-s", function, exe)
		if r.exit != 0 {
			t.Fatalf("go tool objdump: %v", r)
		}
		whole = append(whole, r.stdout)
		accesses := wordAccesses(r.stdout)
		for i, access := range accesses {
			if access != "store 0 to state" {
				continue
			}
			stores = append(stores, function)
			if !slices.Contains(accesses[:i], "load tag") || i+1 == len(accesses) || accesses[i+1] != "load tag" {
				t.Errorf("%s: accesses %q, want a load of tag before the store and one right after it", function, accesses)
			}
		}
	}
	if len(stores) != 1 {
		t.Errorf("%d plain stores to state in %v, want one in all\n%s", len(stores), stores, strings.Join(whole, "\n"))
	}
}

var wordAccess = regexp.MustCompile(`\t(LOCK )?([A-Z]+) ((?:[^,\t]+, )?)(0x4|0)?\(([A-Z0-9]+)\)(, [A-Z0-9]+)?\s*$`)

// wordAccesses lists what a function does to the words of a Mutex, in the order of the code: state is at the address in
// some register, tag 4 bytes above.
func wordAccesses(dump string) (accesses []string) {
	for line := range strings.Lines(dump) {
		match := wordAccess.FindStringSubmatch(strings.TrimRight(line, "\t \n"))
		if match == nil || match[5] == "SP" || strings.HasPrefix(match[2], "NOP") {
			continue
		}
		word := "state"
		if match[4] == "0x4" {
			word = "tag"
		}
		switch {
		case match[1] != "":
			accesses = append(accesses, "locked "+word)
		case match[3] == "$0x0, ":
			accesses = append(accesses, "store 0 to "+word)
		case match[3] != "":
			accesses = append(accesses, "store to "+word)
		default:
			accesses = append(accesses, "load "+word)
		}
	}
	return accesses
}
