package topology

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// String returns the machine in one line.
func (t *Topology) String() string {
	parts := []string{}
	if t.model != "" {
		parts = append(parts, t.model)
	}
	if n := len(t.packages); n > 0 {
		parts = append(parts, count(n, "package"))
	}
	parts = append(parts, count(len(t.nodes), "NUMA node"), count(len(t.domains), "domain"))
	if n := len(t.cores); n > 0 {
		parts = append(parts, count(n, "core"))
	}
	parts = append(parts, count(t.online.Len(), "CPU"))
	return fmt.Sprintf("%s (%s)", strings.Join(parts, ", "), t.source)
}

func count(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Tree writes the machine for people to read: its NUMA nodes, in them the
// locality domains, the distances and the CPUs that are not as others are.
func (t *Topology) Tree(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, t)
	t.writeNodes(b)
	t.writeDistances(b)
	fmt.Fprintf(b, "cpus allowed  %s\n", t.allowed)
	if offline := t.possible.minus(t.online); !offline.Empty() {
		fmt.Fprintf(b, "cpus offline  %s\n", offline)
	}
	if nodes := t.possibleNodes.minus(t.NUMANodes()); !nodes.Empty() {
		fmt.Fprintf(b, "nodes offline %s\n", nodes)
	}
	for i, cpus := range t.classes {
		fmt.Fprintf(b, "core class %d  %s\n", i, cpus)
	}
	if t.cacheLine != Unknown {
		fmt.Fprintf(b, "cache line    %d bytes\n", t.cacheLine)
	}
	if len(t.features) > 0 {
		fmt.Fprintf(b, "features      %s\n", strings.Join(t.features, " "))
	}
	return b.Flush()
}

// writeNodes writes a branch for each NUMA node, and one for what is outside.
func (t *Topology) writeNodes(w io.Writer) {
	var outside []int
	for i, d := range t.domains {
		if d.Node == Unknown {
			outside = append(outside, i)
		}
	}
	for i, n := range t.nodes {
		var inside []int
		for i, d := range t.domains {
			if d.Node == n.ID {
				inside = append(inside, i)
			}
		}
		last := i == len(t.nodes)-1 && len(outside) == 0
		fmt.Fprintf(w, "%s%s\n", branch(last), t.nodeLine(n.NUMANode))
		t.writeDomains(w, trunk(last), inside)
	}
	t.writeDomains(w, "", outside)
}

func orQuestion(n int) string {
	if n == Unknown {
		return "?"
	}
	return strconv.Itoa(n)
}

func branch(last bool) string {
	if last {
		return "└─ "
	}
	return "├─ "
}

func trunk(last bool) string {
	if last {
		return "   "
	}
	return "│  "
}

func (t *Topology) nodeLine(n NUMANode) string {
	line := fmt.Sprintf("node %d", n.ID)
	if n.CPUs.Empty() {
		line += ": no CPUs"
	} else {
		line += ": cpus " + n.CPUs.String()
		for _, p := range t.packages {
			if !p.cpus.and(n.CPUs).Empty() {
				line += fmt.Sprintf(", package %s", orQuestion(p.id))
			}
		}
	}
	if !n.HasMemory {
		line += ", no memory"
	}
	return line
}

func (t *Topology) writeDomains(w io.Writer, indent string, list []int) {
	for i, index := range list {
		fmt.Fprintf(w, "%s%s%s\n", indent, branch(i == len(list)-1), t.domainLine(index))
	}
}

func (t *Topology) domainLine(i int) string {
	d := t.domains[i]
	line := fmt.Sprintf("domain %d: cpus %s", i, d.CPUs)
	if n := t.coresIn(d.CPUs); n > 0 {
		line += ", " + count(n, "core")
		if threads := d.CPUs.Len() / n; threads > 1 && threads*n == d.CPUs.Len() {
			line += fmt.Sprintf(" x %d threads", threads)
		}
	}
	if d.LLC != Unknown {
		c := t.llcs[d.LLC]
		line += fmt.Sprintf(", L%d", c.Level)
		if c.Size != Unknown {
			line += " " + bytes(c.Size)
		}
	}
	if n := d.CPUs.and(t.allowed).Len(); n < d.CPUs.Len() {
		line += fmt.Sprintf(", %d allowed", n)
	}
	return line
}

// coresIn counts the cores that have all their CPUs in cpus.
func (t *Topology) coresIn(cpus Set) int {
	n := 0
	for _, core := range t.cores {
		if core.minus(cpus).Empty() {
			n++
		}
	}
	return n
}

func bytes(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// writeDistances writes the table, unless there is nothing to compare.
func (t *Topology) writeDistances(w io.Writer) {
	if len(t.nodes) < 2 {
		return
	}
	fmt.Fprint(w, "distance ")
	for _, n := range t.nodes {
		fmt.Fprintf(w, "%5d", n.ID)
	}
	fmt.Fprintln(w)
	for _, from := range t.nodes {
		fmt.Fprintf(w, "%9d", from.ID)
		for _, to := range t.nodes {
			fmt.Fprintf(w, "%5s", orQuestion(t.Distance(from.ID, to.ID)))
		}
		fmt.Fprintln(w)
	}
}
