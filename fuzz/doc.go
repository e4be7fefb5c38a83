// Package fuzz holds the fuzz targets of the module: byte strings that are read
// as programs of lock and table operations.
//
// A program runs twice. First its operations are made one after another, and each
// outcome is compared with a plain model of what it should be: queues are slices,
// a mutex is a bool. Then it runs spread over goroutines, all at once, and what
// must hold in any order is checked: exclusion, and that wake-ups given and
// received are the same number.
//
// The corpus in testdata and the seeds in the code run with every go test. To
// search:
//
//	go test ./fuzz -run '^$' -fuzz '^FuzzTable$' -fuzztime 10m
package fuzz
