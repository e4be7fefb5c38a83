package env

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A key is one row of the table.
type key struct {
	name    string
	allowed string // of its values, for people
	valid   func(value string) bool
	effect  string
}

const durations = "a duration such as 50us, from 1us to 1s" // isDuration

// keys is the table, sorted by name.
var keys = []key{
	{"asymmetric", "0 or 1", isSwitch, "0: unlock by an atomic operation everywhere, never by a plain store"},
	{"batch", "a number from 0 to 31", isNumber(0, 31), "functions of waiting calls of Mutex.Do from which on they are run in a batch; 0: never"},
	{"domains", "llc, node or none", isOneOf("llc", "node", "none"), "what a locality domain is: a last-level-cache group, a NUMA node, the machine"},
	{"hashseed", "a number from 0 to 18446744073709551615", isNumber(0, 1<<64-1), "seed of the bucket hash, for runs that repeat"},
	{"hq.budget", durations, isDuration, "time that a goroutine spins for a bucket lock before it sleeps"},
	{"hq.crossings", "a number from 0 to 1000000", isNumber(0, 1e6), "crossings from domain to domain after which a bucket lock goes to mode HQ"},
	{"hq.handovers", "a number from 0 to 1000000", isNumber(0, 1e6), "hand-overs after which a bucket lock goes to mode HQ"},
	{"hq.keep", "a number from 0 to 1000000", isNumber(0, 1e6), "crossings with which a bucket lock stays in mode HQ"},
	{"hq.local", "a number from 1 to 1000000", isNumber(1, 1e6), "hand-overs of a bucket lock inside one domain before the next domain is served"},
	{"hq.localtime", durations, isDuration, "as hq.local, in time"},
	{"hq.patience", durations, isDuration, "time that the first waiter for a bucket lock lets others barge"},
	{"hq.streak", "a number from 0 to 1000000", isNumber(0, 1e6), "hand-overs inside a domain after which a crossing counts"},
	{"hq.votes", "a number from 1 to 1000000", isNumber(1, 1e6), "quiet spells after which a bucket lock leaves mode HQ"},
	{"immutable", "0 or 1", isSwitch, "1: the number of slots never changes again"},
	{"slice", durations, isDuration, "time between two forced hand-overs of a contended mutex"},
	{"slots", "0 or a power of two from 2 to 2147483648", isSlots, "slots of the default parking table"},
	{"spin", "a duration such as 5us, from 0 to 1s", isSpin, "time that a goroutine spins before it parks"},
	{"topology", "NODESxCPUS such as 4x8, or NODESxLLCSxCPUS such as 2x12x16, at most " + strconv.Itoa(MaxShapeCPUs) + " CPUs", isShape, "pretend to be this machine: NUMA nodes, last-level caches per node, CPUs per node or per cache"},
}

func find(name string) (key, bool) {
	i, ok := slices.BinarySearchFunc(keys, name, func(k key, name string) int {
		return strings.Compare(k.name, name)
	})
	if !ok {
		return key{}, false
	}
	return keys[i], true
}

// Allowed reports whether key, a row of the table, may have value, and says what
// is allowed, for callers that take the same settings by another way.
func Allowed(key, value string) (allowed string, ok bool) {
	k, _ := find(key)
	return k.allowed, k.valid(value)
}

func names() string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return strings.Join(list, ", ")
}

// Usage returns one line for each key: its name, values and effect.
func Usage() string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s=%s\n\t%s\n", k.name, k.allowed, k.effect)
	}
	return b.String()
}

func isOneOf(list ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(list, value) }
}

var isSwitch = isOneOf("0", "1")

// number accepts decimal digits only: no sign, no space, no underscore.
func number(value string, max uint64) (n uint64, ok bool) {
	n, err := strconv.ParseUint(value, 10, 64)
	return n, err == nil && n <= max
}

func isNumber(min, max uint64) func(string) bool {
	return func(value string) bool {
		n, ok := number(value, max)
		return ok && n >= min
	}
}

func isSlots(value string) bool {
	n, ok := number(value, 1<<31)
	return ok && n != 1 && n&(n-1) == 0
}

func isDuration(value string) bool {
	d, err := time.ParseDuration(value)
	return err == nil && d >= time.Microsecond && d <= time.Second
}

func isSpin(value string) bool {
	d, err := time.ParseDuration(value)
	return err == nil && d >= 0 && d <= time.Second
}

// Limits of the values of the key topology, far above any machine.
const (
	MaxShapeNodes = 1024
	MaxShapeCPUs  = 8192
)

// A Shape is a value of the key topology: a machine whose nodes are all alike.
type Shape struct {
	Nodes       int // NUMA nodes
	LLCsPerNode int // last-level caches in each
	CPUsPerLLC  int // CPUs that share one
}

// ParseShape reads NODESxCPUS, where each node has one last-level cache, or
// NODESxLLCSxCPUS. It reports whether value is one of these and within the limits.
func ParseShape(value string) (s Shape, ok bool) {
	parts := strings.Split(value, "x")
	if len(parts) == 2 {
		parts = []string{parts[0], "1", parts[1]}
	}
	if len(parts) != 3 {
		return Shape{}, false
	}
	for i, to := range []*int{&s.Nodes, &s.LLCsPerNode, &s.CPUsPerLLC} {
		n, ok := number(parts[i], MaxShapeCPUs)
		if !ok || n == 0 {
			return Shape{}, false
		}
		*to = int(n)
	}
	if s.Nodes > MaxShapeNodes || s.Nodes*s.LLCsPerNode > MaxShapeCPUs/s.CPUsPerLLC {
		return Shape{}, false
	}
	return s, true
}

func isShape(value string) bool {
	_, ok := ParseShape(value)
	return ok
}
