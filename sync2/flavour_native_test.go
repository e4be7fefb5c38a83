//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego && !sync2_std

package sync2_test

import "strings"

// flavour says what this build of package sync2 promises; see flavour_portable_test.go and flavour_std_test.go for the
// others.
var flavour = facts{
	name:        "native",
	sizes:       map[string]size{"Mutex": {8, 4}, "RWMutex": {24, 8}, "WaitGroup": {16, 8}},
	waitReasons: true,
	profiles:    true,
	// The hook that feeds the mutex profile has gone in Go 1.27.
	mutexProfile: strings.HasPrefix(goVersion, "go1.26"),
	allocFree:    true,
	inlinesLock:  true,
}
