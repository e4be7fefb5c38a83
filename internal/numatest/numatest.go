// Package numatest is for tests that need a machine with several NUMA nodes. They
// run wherever there is one, and in the machine that numavm boots.
package numatest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Env is the environment variable in which numavm describes its machine to the
// tests: see [Machine.String].
const Env = "HQSYNC_MACHINE"

// A Machine is the part of a machine's description that tests compare with what
// they find. Nodes are numbered from 0.
type Machine struct {
	CPUs      []string // by node: a list such as "0-1"
	Distances [][]int  // from node, to node
}

// String returns the CPUs of the nodes and the rows of the table of distances,
// as in "0-1/2-3 10,20/20,10".
func (m Machine) String() string {
	var rows []string
	for _, row := range m.Distances {
		var cells []string
		for _, d := range row {
			cells = append(cells, strconv.Itoa(d))
		}
		rows = append(rows, strings.Join(cells, ","))
	}
	return strings.Join(m.CPUs, "/") + " " + strings.Join(rows, "/")
}

// Parse reads what String returns.
func Parse(text string) (Machine, error) {
	cpus, table, _ := strings.Cut(text, " ")
	m := Machine{CPUs: strings.Split(cpus, "/")}
	for row := range strings.SplitSeq(table, "/") {
		var distances []int
		for cell := range strings.SplitSeq(row, ",") {
			d, err := strconv.Atoi(cell)
			if err != nil {
				return Machine{}, fmt.Errorf("numatest: machine %q: %w", text, err)
			}
			distances = append(distances, d)
		}
		if len(distances) != len(m.CPUs) {
			return Machine{}, fmt.Errorf("numatest: machine %q: a row of %d distances for %d nodes", text, len(distances), len(m.CPUs))
		}
		m.Distances = append(m.Distances, distances)
	}
	if len(m.Distances) != len(m.CPUs) {
		return Machine{}, fmt.Errorf("numatest: machine %q: %d rows of distances for %d nodes", text, len(m.Distances), len(m.CPUs))
	}
	return m, nil
}

// Emulated reports whether this process runs on an emulated machine, where times
// mean nothing.
func Emulated() bool { return os.Getenv(Env) != "" }

// Promised returns the machine that Env describes, or skips the test.
func Promised(t testing.TB) Machine {
	t.Helper()
	text, ok := os.LookupEnv(Env)
	if !ok {
		t.Skipf("%s does not say what machine this should be", Env)
	}
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Need skips the test if the machine has but one NUMA node, and fails it if it
// should have more.
func Need(t testing.TB, nodes int) {
	t.Helper()
	switch {
	case strings.Contains(os.Getenv("SYNC2"), "topology="):
		t.Skip("needs several NUMA nodes, those of SYNC2 are made up")
	case nodes > 1:
	case Emulated():
		t.Fatalf("%d NUMA nodes, %s promises more: %s", nodes, Env, os.Getenv(Env))
	default:
		t.Skipf("needs several NUMA nodes, this machine has %d", nodes)
	}
}
