package topology

import (
	"runtime"
	"testing"

	"github.com/hqsync/hqsync/asm"
	"github.com/hqsync/hqsync/internal/rt"
)

// locate has every function that a pinned goroutine may call.
func locate(m *Topology) (cpu, domain, node int) {
	CurrentCPU()
	CurrentDomain()
	CurrentNode()
	m.CPU(0)
	m.Distance(0, 0)
	m.Domain(0)
	m.NodeOf(m.CurrentCPU())
	m.NUMANode(0)
	return m.CurrentCPU(), m.CurrentDomain(), m.CurrentNode()
}

func machinesHere(t testing.TB) map[string]*Topology {
	t.Helper()
	real, err := discover(lookupIn(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	fake, err := Synthetic(Shape{Packages: 2, LLCsPerNode: 2, CoresPerLLC: 4})
	if err != nil {
		t.Fatal(err)
	}
	// One whose only knowledge of CPUs is of those that are here.
	split := newTopology(machine{
		source: "test", cacheLine: Unknown, possible: rangeOf(0, 63), online: rangeOf(0, 63), allowed: rangeOf(0, 63), possibleNodes: setOf(3, 5),
		nodes: []nodeInfo{{NUMANode: NUMANode{ID: 3, CPUs: setOf(0)}}, {NUMANode: NUMANode{ID: 5, CPUs: rangeOf(1, 63)}}},
	}, Node)
	return map[string]*Topology{"real": real, "unloaded": unloaded, "synthetic": fake, "split": split}
}

func TestCurrentMayBeCalledPinned(t *testing.T) {
	for name, m := range machinesHere(t) {
		t.Run(name, func(t *testing.T) {
			if n := testing.AllocsPerRun(100, func() { locate(m) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
			rt.Pin()
			cpu, domain, node := locate(m)
			rt.Unpin()
			unheard := cpu != Unknown && !m.Possible().Has(cpu) && m != unloaded // which counts CPUs, whatever their ids
			if unheard || domain < 0 || domain >= m.NumDomains() || !m.NUMANodes().Has(node) {
				t.Errorf("CPU %d, domain %d, node %d of %v", cpu, domain, node, m)
			}
		})
	}
}

func TestCurrentAgrees(t *testing.T) {
	m := machinesHere(t)["split"]
	for range 1000 {
		before, domain, node, after := m.CurrentCPU(), m.CurrentDomain(), m.CurrentNode(), m.CurrentCPU()
		if before != after || before == Unknown {
			continue // moved meanwhile, or not on Linux
		}
		if want := min(before, 1); domain != want || node != 3+2*want {
			t.Fatalf("on CPU %d: domain %d, node %d", before, domain, node)
		}
		runtime.Gosched()
	}
}

// An unknown CPU, as on other systems or after CPUs were plugged in, is somewhere
// valid.
func TestCurrentWhereTheCPUIsUnknown(t *testing.T) {
	defer func(f func() (uint32, uint32, bool)) { cpuNode = f }(cpuNode)
	m := machinesHere(t)["split"]
	for name, f := range map[string]func() (uint32, uint32, bool){
		"not told": func() (uint32, uint32, bool) { return 0, 0, false },
		"new":      func() (uint32, uint32, bool) { return 64, 9, true },
		"absurd":   func() (uint32, uint32, bool) { return 1<<32 - 1, 1<<32 - 1, true },
	} {
		cpuNode = f
		if d, n := m.CurrentDomain(), m.CurrentNode(); d != 0 || n != 3 {
			t.Errorf("%s: domain %d, node %d, want 0 and 3", name, d, n)
		}
	}
}

func BenchmarkCurrent(b *testing.B) {
	m := machinesHere(b)
	for _, c := range []struct {
		name string
		f    func() int
	}{
		{"call=CurrentCPU/machine=real", m["real"].CurrentCPU},
		{"call=CurrentDomain/machine=real", m["real"].CurrentDomain},
		{"call=CurrentDomain/machine=split", m["split"].CurrentDomain},
		{"call=CurrentDomain/machine=synthetic", m["synthetic"].CurrentDomain},
		{"call=CurrentNode/machine=split", m["split"].CurrentNode},
		{"call=asm.CPUNode", func() int { cpu, _, _ := asm.CPUNode(); return int(cpu) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
		})
	}
}

func BenchmarkDiscover(b *testing.B) {
	for b.Loop() {
		if _, err := discover(lookupIn(nil), nil); err != nil {
			b.Fatal(err)
		}
	}
}
