package topology

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the section want of testdata/*.txt anew")

// A machine is what a tree of testdata shall be read as. Lists are in the format
// of the kernel.
type expected struct {
	online, possible, allowed string // "" for the latter two: as online
	nodes                     map[int]string
	possibleNodes             string // "" for: the keys of nodes
	noMemory                  string // nodes
	distances                 [][]int
	cores                     int
	siblings                  []string // some of them
	llcs                      int
	level, size, line         int
	domains                   []string
	classes                   []string
	packages                  map[int]string
	opens                     int // at most
}

var machines = map[string]expected{
	"one-node": {
		online: "0-1", nodes: map[int]string{0: "0-1"}, distances: [][]int{{10}},
		cores: 2, llcs: 1, level: 3, size: 32 << 20, line: 64, domains: []string{"0-1"},
		packages: map[int]string{0: "0-1"}, opens: 40,
	},
	"two-sockets": {
		online: "0-63", nodes: map[int]string{0: "0-15,32-47", 1: "16-31,48-63"}, distances: [][]int{{10, 21}, {21, 10}},
		cores: 32, siblings: []string{"0,32", "15,47", "31,63"}, llcs: 2, level: 3, size: 22 << 20, line: 64,
		domains:  []string{"0-15,32-47", "16-31,48-63"},
		packages: map[int]string{0: "0-15,32-47", 1: "16-31,48-63"}, opens: 45,
	},
	"two-sockets-interleaved": {
		online: "0-31", nodes: map[int]string{0: every(0, 30, 2), 1: every(1, 31, 2)}, distances: [][]int{{10, 21}, {21, 10}},
		cores: 16, siblings: []string{"0,16", "1,17", "15,31"}, llcs: 2, level: 3, size: 20 << 20, line: 64,
		domains:  []string{every(0, 30, 2), every(1, 31, 2)},
		packages: map[int]string{0: every(0, 30, 2), 1: every(1, 31, 2)}, opens: 45,
	},
	"two-sockets-snc": { // the L3 of a socket is cut into its two nodes
		online: "0-63", nodes: map[int]string{0: "0-7,32-39", 1: "8-15,40-47", 2: "16-23,48-55", 3: "24-31,56-63"},
		distances: [][]int{{10, 11, 21, 21}, {11, 10, 21, 21}, {21, 21, 10, 11}, {21, 21, 11, 10}},
		cores:     32, siblings: []string{"8,40"}, llcs: 2, level: 3, size: 22 << 20, line: 64,
		domains:  []string{"0-7,32-39", "8-15,40-47", "16-23,48-55", "24-31,56-63"},
		packages: map[int]string{0: "0-15,32-47", 1: "16-31,48-63"}, opens: 50,
	},
	"epyc-9654-nps1":       epyc(2, 32, 32),
	"epyc-9654-nps4":       epyc(8, 12, 32),
	"epyc-9654-l3-as-numa": epyc(24, 11, 32),
	"kunpeng-920": {
		online: "0-95", nodes: map[int]string{0: "0-23", 1: "24-47", 2: "48-71", 3: "72-95"},
		distances: [][]int{{10, 12, 20, 22}, {12, 10, 22, 24}, {20, 22, 10, 12}, {22, 24, 12, 10}},
		cores:     96, siblings: []string{"0", "95"}, llcs: 4, level: 3, size: 24 << 20, line: 128,
		domains:  []string{"0-23", "24-47", "48-71", "72-95"},
		packages: map[int]string{36: "0-47", 3180: "48-95"}, opens: 50,
	},
	"sparse-ids": {
		online: "0-159", nodes: map[int]string{0: "0-79", 8: "80-159", 252: "", 253: "", 254: "", 255: ""}, possibleNodes: "0-255",
		distances: [][]int{
			{10, 40, 80, 80, 80, 80}, {40, 10, 80, 80, 80, 80}, {80, 80, 10, 80, 80, 80},
			{80, 80, 80, 10, 80, 80}, {80, 80, 80, 80, 10, 80}, {80, 80, 80, 80, 80, 10},
		},
		cores: 40, siblings: []string{"0-3", "76-79", "80-83", "156-159"}, llcs: 20, level: 3, size: 10 << 20, line: 128,
		domains:  chunks(20, func(i int) string { return fmt.Sprintf("%d-%d", 8*i, 8*i+7) }),
		packages: map[int]string{0: "0-79", 8: "80-159"}, opens: 65,
	},
	"offline-cpus": {
		online: "0-2,4,6-20,22-29,31", possible: "0-63", allowed: "0-2,4,6-20,22-29,31",
		nodes: map[int]string{0: "0-2,4,6-20,22-29,31"}, distances: [][]int{{10}},
		cores: 15, siblings: []string{"0,16", "19", "14", "15,31", "4,20"}, llcs: 2, level: 3, size: 32 << 20, line: 64,
		domains:  []string{"0-2,4,6-7,16-20,22-23", "8-15,24-29,31"},
		packages: map[int]string{0: "0-2,4,6-20,22-29,31"}, opens: 40,
	},
	"hybrid-intel": {
		online: "0-21", nodes: map[int]string{0: "0-21"}, distances: [][]int{{10}},
		cores: 16, siblings: []string{"0-1", "10-11", "12", "19", "20", "21"}, llcs: 2, level: 3, size: 24 << 20, line: 64,
		domains: []string{"0-19", "20-21"}, classes: []string{"0-11", "12-21"},
		packages: map[int]string{0: "0-21"}, opens: 60,
	},
	"hybrid-arm": {
		online: "0-7", nodes: map[int]string{0: "0-7"},
		cores: 8, siblings: []string{"0", "7"}, llcs: 1, level: 3, size: 3 << 20, line: 64,
		domains: []string{"0-7"}, classes: []string{"4-7", "0-3"},
		packages: map[int]string{0: "0-7"}, opens: 50,
	},
	"private-caches": {
		online: "0-79", nodes: map[int]string{0: "0-79"}, distances: [][]int{{10}},
		cores: 80, llcs: 80, level: 2, size: 1 << 20, line: 64, domains: []string{"0-79"},
		packages: map[int]string{0: "0-79"}, opens: 40,
	},
	"vm-without-topology": { // of its packages only some are looked at
		online: "0-39", nodes: map[int]string{0: "0-39"}, distances: [][]int{{10}},
		cores: 40, llcs: 40, level: 3, size: 16 << 20, line: 64, domains: []string{"0-39"}, opens: 100,
	},
	"cpuless-and-memoryless": {
		online: "0-15", nodes: map[int]string{0: "0-7", 1: "8-15", 2: ""}, possibleNodes: "0-7", noMemory: "1",
		distances: [][]int{{10, 21, 14}, {21, 10, 24}, {Unknown, Unknown, Unknown}},
		cores:     16, llcs: 2, level: 3, size: 105 << 20, line: 64, domains: []string{"0-7", "8-15"},
		packages: map[int]string{0: "0-7", 1: "8-15"}, opens: 45,
	},
	"container-without-sys": {
		online: "8-11", nodes: map[int]string{0: "8-11"}, line: Unknown, domains: []string{"8-11"}, opens: 20,
	},
	"container-cgroup-v2": {
		online: "0-15", allowed: "6-9", nodes: map[int]string{0: "0-7", 1: "8-15"}, distances: [][]int{{10, 20}, {20, 10}},
		line: Unknown, domains: []string{"0-7", "8-15"}, opens: 25,
	},
	"container-cgroup-v1": {
		online: "0-15", allowed: "0-1,15", nodes: map[int]string{0: "0-7", 1: "8-15"}, distances: [][]int{{10, 20}, {20, 10}},
		line: Unknown, domains: []string{"0-7", "8-15"}, opens: 30,
	},
}

// epyc is two EPYC 9654 cut into NUMA nodes of equal size. Whatever the nodes,
// the domains are the 24 last-level caches.
func epyc(nodes, near, far int) expected {
	part := func(i, n int) string {
		size := 192 / n
		return fmt.Sprintf("%d-%d,%d-%d", i*size, (i+1)*size-1, 192+i*size, 192+(i+1)*size-1)
	}
	e := expected{
		online: "0-383", nodes: map[int]string{},
		cores: 192, siblings: []string{"0,192", "95,287", "96,288", "191,383"}, llcs: 24, level: 3, size: 32 << 20, line: 64,
		domains:  chunks(24, func(i int) string { return part(i, 24) }),
		packages: map[int]string{0: "0-95,192-287", 1: "96-191,288-383"},
		opens:    100,
	}
	for i := range nodes {
		e.nodes[i] = part(i, nodes)
		row := make([]int, nodes)
		for j := range row {
			switch {
			case i == j:
				row[j] = 10
			case i/(nodes/2) == j/(nodes/2):
				row[j] = near
			default:
				row[j] = far
			}
		}
		e.distances = append(e.distances, row)
	}
	return e
}

func every(from, to, step int) string {
	var s Set
	for i := from; i <= to; i += step {
		s.addRange(i, i)
	}
	return s.String()
}

func chunks(n int, f func(int) string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

func TestMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if strings.HasSuffix(name, ".part") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, ok := machines[name]
			if !ok {
				t.Fatal("testdata has a machine of which nothing is expected")
			}
			tree, wantPrint := readMachineFile(t, name)
			counting := &countingFS{FS: tree}
			m, err := DiscoverFS(counting)
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, m)
			checkCPUs(t, m, want)
			checkNodes(t, m, want)
			checkDomains(t, m, want)
			if n := int(counting.opens.Load()); n > want.opens {
				t.Errorf("%d opens, want at most %d", n, want.opens)
			} else {
				t.Logf("%d opens; nodes %s, domains %d, allowed %s", n, m.NUMANodes(), m.NumDomains(), m.Allowed())
			}
			checkPrint(t, file, m, wantPrint)
		})
	}
	if len(files)-1 != len(machines) {
		t.Errorf("%d machines in testdata, %d expected", len(files)-1, len(machines))
	}
}

func checkSet(t *testing.T, what string, got Set, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func orElse(s, t string) string {
	if s != "" {
		return s
	}
	return t
}

func checkCPUs(t *testing.T, m *Topology, want expected) {
	t.Helper()
	checkSet(t, "online CPUs", m.Online(), want.online)
	checkSet(t, "possible CPUs", m.Possible(), orElse(want.possible, want.online))
	checkSet(t, "allowed CPUs", m.Allowed(), orElse(want.allowed, want.online))
	if m.NumCores() != want.cores {
		t.Errorf("%d cores, want %d", m.NumCores(), want.cores)
	}
	for _, list := range want.siblings {
		s := mustParse(t, list)
		for cpu := range s.All() {
			checkSet(t, fmt.Sprintf("siblings of CPU %d", cpu), m.Core(m.CPU(cpu).Core), list)
		}
	}
	for class, list := range want.classes {
		for cpu := range mustParse(t, list).All() {
			if got := m.CPU(cpu).Class; got != class {
				t.Errorf("class of CPU %d: got %d, want %d", cpu, got, class)
			}
		}
	}
	if len(m.classes) != len(want.classes) {
		t.Errorf("%d classes, want %d", len(m.classes), len(want.classes))
	}
	for id, list := range want.packages {
		var got Set
		for cpu := range m.Online().All() {
			if m.CPU(cpu).Package == id {
				got.addRange(cpu, cpu)
			}
		}
		checkSet(t, fmt.Sprintf("package %d", id), got, list)
	}
	if m.CacheLine() != want.line {
		t.Errorf("cache line: got %d, want %d", m.CacheLine(), want.line)
	}
}

func checkNodes(t *testing.T, m *Topology, want expected) {
	t.Helper()
	var ids []int
	for id, cpus := range want.nodes {
		ids = append(ids, id)
		n, ok := m.NUMANode(id)
		if !ok {
			t.Errorf("no NUMA node %d", id)
		}
		checkSet(t, fmt.Sprintf("NUMA node %d", id), n.CPUs, cpus)
		if memory := !mustParse(t, want.noMemory).Has(id); n.HasMemory != memory {
			t.Errorf("NUMA node %d has memory: got %v, want %v", id, n.HasMemory, memory)
		}
	}
	slices.Sort(ids)
	checkSet(t, "NUMA nodes", m.NUMANodes(), setOf(ids...).String())
	checkSet(t, "possible NUMA nodes", m.PossibleNUMANodes(), orElse(want.possibleNodes, setOf(ids...).String()))
	for i, from := range ids {
		for j, to := range ids {
			d := Unknown
			if want.distances != nil {
				d = want.distances[i][j]
			}
			if got := m.Distance(from, to); got != d {
				t.Errorf("distance from %d to %d: got %d, want %d", from, to, got, d)
			}
		}
	}
}

func checkDomains(t *testing.T, m *Topology, want expected) {
	t.Helper()
	if m.NumDomains() != len(want.domains) {
		t.Fatalf("%d domains, want %d", m.NumDomains(), len(want.domains))
	}
	for i, list := range want.domains {
		checkSet(t, fmt.Sprintf("domain %d", i), m.Domain(i).CPUs, list)
	}
	if m.NumLLCs() != want.llcs {
		t.Fatalf("%d last-level caches, want %d", m.NumLLCs(), want.llcs)
	}
	if want.llcs > 0 {
		if c := m.LLC(0); c.Level != want.level || c.Size != want.size {
			t.Errorf("last-level cache: got %+v, want level %d, %d bytes", c, want.level, want.size)
		}
	}

	none := m.GroupBy(None)
	checkInvariants(t, none)
	if none.NumDomains() != 1 {
		t.Errorf("GroupBy(None): %d domains", none.NumDomains())
	}
	node := m.GroupBy(Node)
	checkInvariants(t, node)
	withCPUs := 0
	for _, cpus := range want.nodes {
		if cpus != "" {
			withCPUs++
		}
	}
	if node.NumDomains() != withCPUs {
		t.Errorf("GroupBy(Node): %d domains, want %d", node.NumDomains(), withCPUs)
	}
}

func checkPrint(t *testing.T, file string, m *Topology, want string) {
	t.Helper()
	var b strings.Builder
	if err := m.Tree(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() == want {
		return
	}
	if !*update {
		t.Errorf("Tree prints\n%s\nwant\n%s", b.String(), want)
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body, _, _ := strings.Cut(string(text), "-- want --\n")
	if err := os.WriteFile(file, []byte(body+"-- want --\n"+b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func mustParse(t testing.TB, list string) Set {
	t.Helper()
	s, err := ParseCPUList(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
