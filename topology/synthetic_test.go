package topology

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hqsync/hqsync/internal/env"
	"github.com/hqsync/hqsync/internal/rt"
)

func TestSynthetic(t *testing.T) {
	for _, c := range []struct {
		shape     Shape
		cpus      string
		nodes     []string
		domains   []string
		cores     int
		core0     string
		distances []int // from node 0
	}{
		{Shape{}, "0", []string{"0"}, []string{"0"}, 1, "0", []int{10}},
		{Shape{Packages: 2, CoresPerLLC: 2}, "0-3", []string{"0-1", "2-3"}, []string{"0-1", "2-3"}, 4, "0", []int{10, 20}},
		{Shape{Packages: 2, NodesPerPackage: 2, CoresPerLLC: 2, ThreadsPerCore: 2}, "0-15",
			[]string{"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}, []string{"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}, 8, "0,8", []int{10, 12, 20, 20}},
		{Shape{LLCsPerNode: 3, CoresPerLLC: 4}, "0-11", []string{"0-11"}, []string{"0-3", "4-7", "8-11"}, 12, "0", []int{10}},
		// Caches of a single core make no domains.
		{Shape{LLCsPerNode: 4, ThreadsPerCore: 2}, "0-7", []string{"0-7"}, []string{"0-7"}, 4, "0,4", []int{10}},
	} {
		t.Run(fmt.Sprintf("%+v", c.shape), func(t *testing.T) {
			m, err := Synthetic(c.shape)
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, m)
			checkSet(t, "online", m.Online(), c.cpus)
			checkSet(t, "allowed", m.Allowed(), c.cpus)
			for id, cpus := range c.nodes {
				n, _ := m.NUMANode(id)
				checkSet(t, fmt.Sprint("node ", id), n.CPUs, cpus)
				if d := m.Distance(0, id); d != c.distances[id] {
					t.Errorf("distance to %d: got %d, want %d", id, d, c.distances[id])
				}
			}
			if m.NUMANodes().Len() != len(c.nodes) || m.NumDomains() != len(c.domains) || m.NumCores() != c.cores {
				t.Fatalf("%v: want %d nodes, %d domains, %d cores", m, len(c.nodes), len(c.domains), c.cores)
			}
			for i, cpus := range c.domains {
				checkSet(t, fmt.Sprint("domain ", i), m.Domain(i).CPUs, cpus)
			}
			checkSet(t, "core 0", m.Core(0), c.core0)
			places := slices.Clone(m.places)
			slices.Sort(places)
			checkSet(t, "places", setOf(places...), c.cpus)
			if len(places) != m.Online().Len() {
				t.Errorf("%d places for %d CPUs", len(places), m.Online().Len())
			}
			for i := range min(m.NumDomains(), len(m.places)) {
				if d := m.DomainOf(m.places[i]); d != i {
					t.Errorf("P %d is put into domain %d", i, d)
				}
			}
		})
	}
	for _, s := range []Shape{{Packages: -1}, {ThreadsPerCore: math.MinInt}, {CoresPerLLC: 8193}, {Packages: math.MaxInt, CoresPerLLC: math.MaxInt}, {Packages: 1025}, {Packages: 128, LLCsPerNode: 128}} {
		if m, err := Synthetic(s); err == nil || !strings.HasPrefix(err.Error(), "topology: shape {") {
			t.Errorf("Synthetic(%+v) = %v, %v", s, m, err)
		}
	}
}

func TestSyntheticPlacesCallersByTheirP(t *testing.T) {
	if !rt.Pinnable {
		t.Skip("the portable runtime does not tell the number of a P")
	}
	m, err := Synthetic(Shape{Packages: 4, CoresPerLLC: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, m := range []*Topology{m, m.GroupBy(Node)} {
		for range 100 {
			p := rt.Pin()
			cpu, domain, node := m.CurrentCPU(), m.CurrentDomain(), m.CurrentNode()
			rt.Unpin()
			if domain != p%4 || node != p%4 || m.DomainOf(cpu) != domain || cpu != 8*(p%4)+p/4 {
				t.Fatalf("P %d is on CPU %d of domain %d, node %d", p, cpu, domain, node)
			}
			runtime.Gosched()
		}
	}
}

func lookupIn(values map[string]string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		v, ok := values[key]
		return v, ok
	}
}

func TestEnvironment(t *testing.T) {
	envErr := errors.New("env: SYNC2 has no key")
	for _, c := range []struct {
		values  map[string]string
		envErr  error
		domains int // 0: those of the real machine
	}{
		{map[string]string{}, nil, 0},
		{map[string]string{}, envErr, 0},
		{map[string]string{"domains": "none"}, nil, 1},
		{map[string]string{"topology": "4x8"}, nil, 4},
		{map[string]string{"topology": "4x8"}, envErr, 4},
		{map[string]string{"topology": "4x8", "domains": "none"}, nil, 1},
		{map[string]string{"topology": "2x3x8"}, nil, 6},
		{map[string]string{"topology": "2x3x8", "domains": "llc"}, nil, 6},
		{map[string]string{"topology": "2x3x8", "domains": "node"}, nil, 2},
	} {
		m, err := discover(lookupIn(c.values), c.envErr)
		if !errors.Is(err, c.envErr) {
			t.Errorf("%v: error %v, want %v", c.values, err, c.envErr)
		}
		checkInvariants(t, m)
		if c.domains != 0 && m.NumDomains() != c.domains {
			t.Errorf("%v: %d domains, want %d", c.values, m.NumDomains(), c.domains)
		}
		if fake := c.values["topology"] != ""; (m.source == "synthetic") != fake {
			t.Errorf("%v: the source is %s", c.values, m.source)
		}
	}
}

func TestEnvironmentThatIsNotUnderstood(t *testing.T) {
	m, err := discover(lookupIn(map[string]string{"topology": "big"}), nil)
	if err == nil || err.Error() != `topology: "big" is not a shape such as 4x8 or 2x12x16` || m.source == "synthetic" {
		t.Errorf("%v, %v", m, err)
	}
	checkInvariants(t, m)
}

// FuzzEnv: any value of SYNC2 gives a topology, faked as it says if it is right,
// and an error if it is not.
func FuzzEnv(f *testing.F) {
	for _, s := range []string{
		"", "topology=4x8", "domains=llc", "domains=node,topology=2x12x16", "domains=none,topology=1x1", "topology=1024x8",
		"topology=0x8", "topology=9x9x9x9", "topology=,domains=", "topology=4x8,topology=2x2", "domains=l3", "topology=99999999999999999999x1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		values, envErr := env.Parse(s)
		shape, isShape := env.ParseShape(values["topology"])
		if !isShape {
			_, valid := env.ParseShape(s)
			if m, err := fake(s); (err == nil) != valid || (m == nil) == valid {
				t.Errorf("fake(%q) = %v, %v", s, m, err)
			}
			return // the real machine is the matter of other tests
		}
		m, err := discover(lookupIn(values), envErr)
		if err != envErr {
			t.Errorf("%q: error %v, want %v", s, err, envErr)
		}
		if n := shape.Nodes * shape.LLCsPerNode * shape.CPUsPerLLC; m.Online().Len() != n || m.Allowed().Len() != n || m.NUMANodes().Len() != shape.Nodes {
			t.Errorf("%q: %v", s, m)
		}
		domains := shape.Nodes
		switch {
		case values["domains"] == "none":
			domains = 1
		case values["domains"] != "node" && shape.CPUsPerLLC > 1:
			domains *= shape.LLCsPerNode
		}
		if m.NumDomains() != domains {
			t.Errorf("%q: %d domains, want %d", s, m.NumDomains(), domains)
		}
		if m.Online().Len() <= 256 {
			checkInvariants(t, m)
		}
	})
}
