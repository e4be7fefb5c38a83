//go:build sim

package numasim

// A Published is a cell of a table that others have measured: locktorture on one lock.
type Published struct {
	Machine  string
	Threads  int
	Gain     float64 // of the hierarchical lock over qspinlock, in per cent
	Fairness float64 // factor of the hierarchical lock; 0: not given
}

// The numbers of threads in the tables.
var (
	genoaThreads   = []int{8, 16, 32, 64, 128, 256, 384}
	kunpengThreads = []int{8, 16, 32, 64, 96}
	haswellThreads = []int{1, 2, 4, 8, 16, 72, 142}
)

// published is the table of the RFC "hq-spinlock" (Fedorov and Stepanov): 60 s of locktorture, EPYC 9654 with two sockets
// and 384 hardware threads, and Kunpeng 920 with 96 cores.
var published = map[string]struct {
	threads        []int
	gain, fairness []float64
}{
	"epyc9654-nps1":  {genoaThreads, []float64{19, 13, 8, 11, 9, 2, -1}, []float64{.54, .52, .53, .52, .51, .52, .51}},
	"epyc9654-nps2":  {genoaThreads, []float64{21, 18, 14, 12, 17, 16, 14}, []float64{.57, .53, .53, .56, .54, .52, .51}},
	"epyc9654-nps4":  {genoaThreads, []float64{12, 34, 25, 30, 37, 40, 44}, []float64{.57, .60, .53, .54, .54, .52, .51}},
	"epyc9654-nps12": {genoaThreads, []float64{12, 75, 112, 152, 163, 168, 186}, []float64{.55, .58, .61, .56, .53, .52, .51}},
	"kunpeng920":     {kunpengThreads, []float64{93, 142, 129, 152, 158}, nil},
}

// PublishedFor returns the published cells of a machine.
func PublishedFor(machine string) (cells []Published) {
	p := published[machine]
	for i, n := range p.threads {
		c := Published{Machine: machine, Threads: n, Gain: p.gain[i]}
		if p.fairness != nil {
			c.Fairness = p.fairness[i]
		}
		cells = append(cells, c)
	}
	return cells
}

// ThreadsFor returns the numbers of threads at which a machine is looked at: those of its table, below 8 as well, where the
// detector must cost nothing.
func ThreadsFor(m Machine) []int {
	switch p := published[m.Name]; {
	case p.threads != nil:
		return append([]int{2, 4}, p.threads...)
	case m.Name == "haswell4":
		return haswellThreads
	case len(m.CPUs) == 384:
		return append([]int{2, 4}, genoaThreads...)
	}
	return []int{2, 4, 8, 16, 28, 56, 112}
}
