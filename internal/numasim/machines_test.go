//go:build sim

package numasim

import (
	"testing"
)

func TestMachines_HaveTheShapeTheyAreNamedFor(t *testing.T) {
	for _, want := range []struct {
		name          string
		cpus, domains int
	}{
		{"epyc9654-nps1", 384, 2}, {"epyc9654-nps2", 384, 4}, {"epyc9654-nps4", 384, 8}, {"epyc9654-nps12", 384, 24},
		{"epyc9654-nps1-llc", 384, 24}, {"kunpeng920", 96, 4}, {"cascadelake", 112, 2}, {"haswell4", 144, 4},
	} {
		m, err := MachineNamed(want.name)
		if err != nil {
			t.Error(err)
			continue
		}
		domains := map[int]int{}
		for _, p := range m.CPUs {
			domains[m.Domain(p)]++
		}
		if len(m.CPUs) != want.cpus || len(domains) != want.domains {
			t.Errorf("%s: %d CPUs in %d domains, want %d in %d", want.name, len(m.CPUs), len(domains), want.cpus, want.domains)
		}
		for d, n := range domains {
			if n != want.cpus/want.domains {
				t.Errorf("%s: domain %d has %d CPUs", want.name, d, n)
			}
		}
	}
	if _, err := MachineNamed("cray1"); err == nil {
		t.Error("no error for a machine that is not there")
	}
}

func TestPlace_CoresBeforeTheirSecondThreads(t *testing.T) {
	m := Machines[0]
	for threads, cores := range map[int]int{1: 1, 96: 96, 192: 192, 193: 192, 384: 192} {
		cpus, seen := map[int]bool{}, map[int]bool{}
		for _, cpu := range place(m.CPUs, false, threads, 7) {
			cpus[cpu], seen[m.CPUs[cpu].Core] = true, true
		}
		if len(cpus) != threads || len(seen) != cores {
			t.Errorf("%d threads: %d CPUs of %d cores, want %d", threads, len(cpus), len(seen), cores)
		}
	}
}

func TestFairness(t *testing.T) {
	for _, c := range []struct {
		counts          []int
		topHalf, maxMin float64
	}{
		{[]int{5, 5, 5, 5}, 0.5, 0.5}, {[]int{0, 10}, 1, 1}, {[]int{1, 3}, 0.75, 0.75}, {[]int{1, 2, 3, 4}, 0.7, 0.8}, {[]int{5, 5, 5}, 0.5, 0.5},
	} {
		if a, b := fairness(c.counts); a != c.topHalf || b != c.maxMin {
			t.Errorf("%v: %v and %v, want %v and %v", c.counts, a, b, c.topHalf, c.maxMin)
		}
	}
}

// One thread has nothing to wait for: the authors of CNA report 557 ns for it, 505 of which are the loop's own holds.
func TestTorture_OneThread(t *testing.T) {
	o, err := Run{Machine: machine(t, "haswell4"), Lock: "qspinlock", Threads: 1, Ops: 5000}.Torture()
	if err != nil {
		t.Fatal(err)
	}
	if o.PerOp < 0.92*557 || o.PerOp > 1.08*557 {
		t.Errorf("%.0f ns per acquisition, want 557", o.PerOp)
	}
}

func TestMeasure_Errors(t *testing.T) {
	for _, n := range []int{0, 145} {
		if _, err := Measure(machine(t, "haswell4"), "mcs", n, Quick); err == nil {
			t.Errorf("no error for %d threads on 144 CPUs", n)
		}
	}
	if _, err := Measure(machine(t, "haswell4"), "mutex", 2, Quick); err == nil {
		t.Error("no error for a lock that is not there")
	}
}
