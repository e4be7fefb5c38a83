//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego) && !sync2_std

package sync2_test

// flavour: without the runtime's help goroutines park on channels. Dumps, profiles, traces and the metric then show
// channels, and each wait makes one.
var flavour = facts{
	name:        "portable",
	tags:        "purego",
	sizes:       map[string]size{"Mutex": {8, 4}, "RWMutex": {24, 8}, "WaitGroup": {16, 8}},
	inlinesLock: true,
}
