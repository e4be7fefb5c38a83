package main

//lint:file-ignore SA2001 empty sections are what is counted

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/hqsync/hqsync/bench/internal/result"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/sync2"
)

type instructionsCmd struct{}

func (c *instructionsCmd) Help() string {
	return `Counts the instructions that one goroutine executes for an operation on a primitive that nobody else uses, by letting the
machine execute one at a time, and among them, on amd64, those that lock the bus or the cache line. Linux only.

Example: go run ./bench instructions -filter RWMutex

A row 17 (2) and 13 (1) means that sync takes 17 instructions, two of them locked, and sync2 takes 13, one of them locked. A
locked instruction takes as long as ten to thirty others, so it is these that count. The loop around the operation is
included in both: two or three instructions. The counts do not depend on the load of the machine, but the time to count does:
each instruction is a switch between two processes.`
}

// A counted operation does the same n times on sync and on sync2. The loops are written out so that the compiler inlines
// what it inlines in any program.
type counted struct {
	name, label string
	arms        map[string]func(n int)
}

var countedOperations = []counted{
	{"mutex", "Mutex Lock, Unlock", map[string]func(n int){
		result.Sync: func(n int) {
			for range n {
				stdMutex.Lock()
				stdMutex.Unlock()
			}
		},
		result.Sync2: func(n int) {
			for range n {
				ourMutex.Lock()
				ourMutex.Unlock()
			}
		},
	}},
	{"rlock", "RWMutex RLock, RUnlock", map[string]func(n int){
		result.Sync: func(n int) {
			for range n {
				stdRWMutex.RLock()
				stdRWMutex.RUnlock()
			}
		},
		result.Sync2: func(n int) {
			for range n {
				ourRWMutex.RLock()
				ourRWMutex.RUnlock()
			}
		},
	}},
	{"lock", "RWMutex Lock, Unlock", map[string]func(n int){
		result.Sync: func(n int) {
			for range n {
				stdRWMutex.Lock()
				stdRWMutex.Unlock()
			}
		},
		result.Sync2: func(n int) {
			for range n {
				ourRWMutex.Lock()
				ourRWMutex.Unlock()
			}
		},
	}},
	{"do", "Mutex Do (sync: Lock, f, Unlock)", map[string]func(n int){
		result.Sync: func(n int) {
			for range n {
				stdMutex.Lock()
				nothing()
				stdMutex.Unlock()
			}
		},
		result.Sync2: func(n int) {
			for range n {
				ourMutex.Do(nothing)
			}
		},
	}},
	{"waitgroup", "WaitGroup Add, Done", map[string]func(n int){
		result.Sync: func(n int) {
			for range n {
				stdWaitGroup.Add(1)
				stdWaitGroup.Done()
			}
		},
		result.Sync2: func(n int) {
			for range n {
				ourWaitGroup.Add(1)
				ourWaitGroup.Done()
			}
		},
	}},
}

var (
	stdMutex     sync.Mutex
	stdRWMutex   sync.RWMutex
	stdWaitGroup sync.WaitGroup
	ourMutex     sync2.Mutex
	ourRWMutex   sync2.RWMutex
	ourWaitGroup sync2.WaitGroup
	nothing      = func() {}
)

// A count is instructions for each operation.
type count struct{ all, locked int }

func (c count) String() string {
	if c.locked < 0 {
		return fmt.Sprint(c.all)
	}
	return fmt.Sprintf("%d (%d)", c.all, c.locked)
}

func (c *instructionsCmd) Run(b *bench) error {
	if err := b.without("instructions", "d", "samples", "procs", "json", "out"); err != nil {
		return err
	}
	if race.Enabled {
		return usagef("instructions: those of the race detector would be counted: build without -race")
	}
	pattern, err := regexp.Compile(b.Filter)
	if err != nil {
		return usagef("-filter: %w", err)
	}
	operations := slices.DeleteFunc(slices.Clone(countedOperations), func(op counted) bool { return !pattern.MatchString(op.label) })
	if len(operations) == 0 {
		return usagef("-filter %q matches no row; they look like %s", b.Filter, countedOperations[0].label)
	}
	fmt.Fprintln(b.stdout, "instructions for each operation, counted by single steps; in parentheses those that are locked")
	w := tabwriter.NewWriter(b.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "operation\t%s\t%s\t\n", result.Sync, result.Sync2)
	for _, op := range operations {
		var counts [2]count
		for i, arm := range []string{result.Sync, result.Sync2} {
			if counts[i], err = countInstructions(op.name, arm); err != nil {
				return fmt.Errorf("%s of %s: %w", op.label, arm, err)
			}
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t\n", op.label, counts[0], counts[1])
	}
	return w.Flush()
}
