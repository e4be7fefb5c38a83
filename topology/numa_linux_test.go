package topology

import (
	"testing"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/rt"
)

// What is read from a real kernel is what the machine was built as.
func TestMachineIsAsPromised(t *testing.T) {
	want := numatest.Promised(t)
	m, err := Get()
	if err != nil {
		t.Fatal(err)
	}
	nodes := rangeOf(0, len(want.CPUs)-1)
	if !m.NUMANodes().Equal(nodes) || !m.PossibleNUMANodes().Equal(nodes) || m.NumDomains() != len(want.CPUs) || m.ActiveDomains() != len(want.CPUs) {
		t.Errorf("nodes %v, possible %v, %d domains, %d active", m.NUMANodes(), m.PossibleNUMANodes(), m.NumDomains(), m.ActiveDomains())
	}
	for id, list := range want.CPUs {
		n, _ := m.NUMANode(id)
		if n.CPUs.String() != list || !n.HasMemory {
			t.Errorf("node %d: %+v, want CPUs %s", id, n, list)
		}
		for to, d := range want.Distances[id] {
			if got := m.Distance(id, to); got != d {
				t.Errorf("from node %d to %d it is %d, want %d", id, to, got, d)
			}
		}
		for cpu := range n.CPUs.All() {
			if d := m.Domain(m.DomainOf(cpu)); m.NodeOf(cpu) != id || d.Node != id || !d.CPUs.Equal(n.CPUs) {
				t.Errorf("CPU %d: %+v, domain %+v", cpu, m.CPU(cpu), d)
			}
		}
	}
	if !m.Allowed().Equal(m.Online()) || !m.Online().Equal(m.Possible()) {
		t.Errorf("possible %v, online %v, allowed %v", m.Possible(), m.Online(), m.Allowed())
	}
}

func TestCallerIsWhereItsThreadIs(t *testing.T) {
	m, err := Get()
	if err != nil {
		t.Fatal(err)
	}
	numatest.Need(t, m.NUMANodes().Len())
	for cpu := range m.Allowed().All() {
		err := numatest.On(setOf(cpu).All(), func() {
			forgetCPU()
			rt.Pin()
			here, domain, node := CurrentCPU(), CurrentDomain(), CurrentNode()
			rt.Unpin()
			if here != cpu || domain != m.DomainOf(cpu) || node != m.NodeOf(cpu) {
				t.Errorf("on CPU %d: CPU %d, domain %d, node %d", cpu, here, domain, node)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// forgetCPU makes the calling goroutine's P ask the kernel again, where it
// remembers an answer.
func forgetCPU() {
	for range 100 {
		CurrentCPU()
	}
}
