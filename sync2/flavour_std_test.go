//go:build sync2_std

package sync2_test

// flavour: the types wrap package sync's. All but Mutex are larger than those.
var flavour = facts{
	name:         "std",
	wraps:        true,
	tags:         "sync2_std",
	sizes:        map[string]size{"Mutex": {8, 4}},
	waitReasons:  true,
	profiles:     true,
	mutexProfile: true,
	inlinesLock:  true,
	leaksSeen:    true,
}
