// Package env reads the environment variable SYNC2, by which an operator tunes
// a program that was built without thinking of it:
//
//	SYNC2=domains=node,hq.local=64 ./service
//
// The value is a list of key=value, separated by commas. Spaces around an item
// do not count, nor do empty items; keys and values are case-sensitive. [Usage]
// prints the keys and what each of them allows.
//
// A package that obeys a key asks [Lookup] for it, and adds it to the table in
// keys.go: there its values are checked, for all packages at once, so that a
// misspelt key is an error even where the package meant is not linked in.
package env

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Name is the name of the environment variable.
const Name = "SYNC2"

// The variable is read once, by the first who asks: importing costs nothing,
// and a change made later is not seen.
var parsed = sync.OnceValues(func() (map[string]string, error) {
	return Parse(os.Getenv(Name))
})

// Lookup returns the value of key and whether the variable gives an allowed one.
// What is wrong with the rest of the variable does not matter to it: see [Err].
//
// The first call of the process allocates, and waits for another first call: a
// pinned goroutine may not make it.
func Lookup(key string) (value string, ok bool) {
	values, _ := parsed()
	value, ok = values[key]
	return value, ok
}

// Err returns what is wrong with the variable, or nil. It names every bad item.
func Err() error {
	_, err := parsed()
	return err
}

// Parse reads s, a value of the variable. The map, never nil, holds the items
// that are right; the error, if any, names each of the others and what is
// allowed in its place. A key that is given twice is wrong the second time.
func Parse(s string) (map[string]string, error) {
	values := make(map[string]string)
	var errs []error
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, value, err := parseItem(item)
		if _, twice := values[name]; err == nil && twice {
			err = fmt.Errorf("env: %s gives %s twice", Name, name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		values[name] = value
	}
	return values, errors.Join(errs...)
}

func parseItem(item string) (name, value string, err error) {
	name, value, ok := strings.Cut(item, "=")
	if !ok {
		return "", "", fmt.Errorf("env: %s item %q is not key=value", Name, item)
	}
	k, ok := find(name)
	if !ok {
		return "", "", fmt.Errorf("env: %s has no key %q; allowed: %s", Name, name, names())
	}
	if !k.valid(value) {
		return "", "", fmt.Errorf("env: %s key %s cannot be %q; allowed: %s", Name, name, value, k.allowed)
	}
	return name, value, nil
}
