package parking

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/hqsync/hqsync/hq"
	"github.com/hqsync/hqsync/internal/env"
	"github.com/hqsync/hqsync/topology"
)

// What a table takes from outside: luck, the environment, the machine. All of it
// is read when a table gets its first buckets, never while a P is pinned. Under
// the race detector it has been read before: see prepare.

// randomMultiplier returns a random odd number for the table of this number.
func randomMultiplier(number uint32) uint64 {
	if value, ok := env.Lookup("hashseed"); ok {
		seed, _ := strconv.ParseUint(value, 10, 64)
		return rand.NewPCG(seed, uint64(number)).Uint64() | 1
	}
	return rand.Uint64() | 1
}

// orderedByEnvironment returns what the environment wants of the default table: slots, whether
// it says so itself, and the mode. n is the number of slots if it says nothing.
func orderedByEnvironment(n int) (slots int, custom bool, m mode) {
	slots = n
	if value, ok := env.Lookup("slots"); ok {
		wanted, _ := strconv.ParseUint(value, 10, 64)
		slots, custom = int(min(wanted, MaxSlots)), true
	}
	if value, _ := env.Lookup("immutable"); value == "1" || slots == 0 {
		m = fixed
	}
	return slots, custom, m
}

// realMachine finds out what this process runs on.
func realMachine() *machine {
	hq.Load()
	top, _ := topology.Get()
	return newMachine(slices.Collect(top.PossibleNUMANodes().All()), top.Possible().Len(), topology.CurrentNode, policyNode)
}
