package topology

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// maxTreeFiles bounds what a text of the fuzzer may unfold to.
const maxTreeFiles = 20_000

// parseTree unfolds the text form of a machine, which testdata/README.md
// describes. include reads the text of another one.
func parseTree(text string, include func(name string) (string, error)) (fstest.MapFS, error) {
	tree := fstest.MapFS{}
	var names []string
	var content strings.Builder
	flush := func() error {
		for _, name := range names {
			if !fs.ValidPath(name) || len(tree) == maxTreeFiles {
				return fmt.Errorf("bad file name %q, or too many", name)
			}
			tree[name] = &fstest.MapFile{Data: []byte(content.String())}
		}
		content.Reset()
		return nil
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(trimmed, "-- "); ok && strings.HasSuffix(name, " --") {
			if err := flush(); err != nil {
				return nil, err
			}
			var err error
			if names, err = unfold(strings.TrimSuffix(name, " --")); err != nil {
				return nil, err
			}
			continue
		}
		if name, ok := strings.CutPrefix(trimmed, "include "); ok && names == nil {
			text, err := include(name)
			if err != nil {
				return nil, err
			}
			part, err := parseTree(text, include)
			if err != nil {
				return nil, err
			}
			for name, file := range part {
				tree[name] = file
			}
			continue
		}
		content.WriteString(line)
		if names == nil {
			content.Reset() // a comment
		}
	}
	return tree, flush()
}

// unfold replaces the first [list] or {a,b} of a name by each of its members, and
// then the next one.
func unfold(name string) ([]string, error) {
	at := strings.IndexAny(name, "[{")
	if at < 0 {
		return []string{name}, nil
	}
	closing := map[byte]string{'[': "]", '{': "}"}[name[at]]
	inside, after, ok := strings.Cut(name[at+1:], closing)
	if !ok {
		return nil, fmt.Errorf("no %s in %q", closing, name)
	}
	words := strings.Split(inside, ",")
	if closing == "]" {
		set, err := ParseCPUList(inside)
		if err != nil {
			return nil, err
		}
		words = nil
		for id := range set.All() {
			words = append(words, fmt.Sprint(id))
		}
	}
	var names []string
	for _, word := range words {
		more, err := unfold(name[:at] + word + after)
		if err != nil {
			return nil, err
		}
		if names = append(names, more...); len(names) > maxTreeFiles {
			return nil, fmt.Errorf("%q is too many files", name)
		}
	}
	return names, nil
}

func readTestdata(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	return string(b), err
}

// readMachineFile returns the tree of a machine and what Tree shall print.
func readMachineFile(t testing.TB, name string) (tree fstest.MapFS, want string) {
	t.Helper()
	text, err := readTestdata(name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	tree, err = parseTree(text, readTestdata)
	if err != nil {
		t.Fatal(err)
	}
	if w := tree["want"]; w != nil {
		want = string(w.Data)
		delete(tree, "want")
	}
	return tree, want
}

// overlay returns a copy of tree with other files; a file that is nil is gone.
func overlay(tree fstest.MapFS, files map[string]any) fstest.MapFS {
	u := fstest.MapFS{}
	for name, file := range tree {
		u[name] = file
	}
	for name, content := range files {
		delete(u, name)
		if content != nil {
			u[name] = &fstest.MapFile{Data: []byte(content.(string))}
		}
	}
	return u
}

// countingFS counts what is opened, whether or not it exists.
type countingFS struct {
	fs.FS
	opens atomic.Int64
	names []string
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.opens.Add(1)
	c.names = append(c.names, name)
	return c.FS.Open(name)
}

// checkInvariants fails if t contradicts itself. It holds for any input.
func checkInvariants(tb testing.TB, t *Topology) {
	tb.Helper()
	contains := func(what string, big, small Set) {
		if !small.minus(big).Empty() {
			tb.Errorf("%s: %s not in %s", what, small, big)
		}
	}
	contains("online is possible", t.Possible(), t.Online())
	contains("allowed is online", t.Online(), t.Allowed())
	contains("online nodes are possible", t.PossibleNUMANodes(), t.NUMANodes())
	if t.Allowed().Empty() || t.NUMANodes().Empty() {
		tb.Error("no CPU is allowed, or no NUMA node is online")
	}

	var inDomains, inNodes, inCores, inLLCs Set
	disjoint := func(what string, all *Set, part Set) {
		if part.Empty() || !part.and(*all).Empty() {
			tb.Errorf("%s: %s is empty or meets %s", what, part, *all)
		}
		*all = all.or(part)
	}
	for i := range t.NumDomains() {
		d := t.Domain(i)
		disjoint("domains", &inDomains, d.CPUs)
		for cpu := range d.CPUs.All() {
			if c := t.CPU(cpu); c.Domain != i || t.DomainOf(cpu) != i || d.Node != Unknown && c.Node != d.Node || d.LLC != Unknown && c.LLC != d.LLC {
				tb.Errorf("CPU %+v is in domain %d %+v", c, i, d)
			}
		}
	}
	if !inDomains.Equal(t.Online()) {
		tb.Errorf("domains hold %s, online is %s", inDomains, t.Online())
	}
	for id := range t.NUMANodes().All() {
		n, ok := t.NUMANode(id)
		if !ok || n.ID != id {
			tb.Errorf("NUMANode(%d) = %+v, %v", id, n, ok)
		}
		if !n.CPUs.Empty() {
			disjoint("nodes", &inNodes, n.CPUs)
		}
		for cpu := range n.CPUs.All() {
			if t.NodeOf(cpu) != id {
				tb.Errorf("NodeOf(%d) = %d, want %d", cpu, t.NodeOf(cpu), id)
			}
		}
		for to := range t.NUMANodes().All() {
			if d := t.Distance(id, to); d < Unknown || d > 255 {
				tb.Errorf("Distance(%d, %d) = %d", id, to, d)
			}
		}
	}
	for i := range t.NumCores() {
		disjoint("cores", &inCores, t.Core(i))
	}
	for i := range t.NumLLCs() {
		disjoint("last-level caches", &inLLCs, t.LLC(i).CPUs)
	}
	for what, s := range map[string]Set{"nodes": inNodes, "cores": inCores, "last-level caches": inLLCs} {
		contains(what+" are online", t.Online(), s)
	}
	for id := range t.Possible().All() {
		c := t.CPU(id)
		if c.ID != id || c.Online != t.Online().Has(id) || c.Allowed != t.Allowed().Has(id) ||
			(c.Core != Unknown) != inCores.Has(id) || (c.LLC != Unknown) != inLLCs.Has(id) || (c.Class != Unknown) != c.Online {
			tb.Errorf("CPU(%d) = %+v", id, c)
		}
	}
	for _, id := range []int{-1, math.MinInt, t.Possible().Max() + 1, math.MaxInt} {
		if c := t.CPU(id); c != unknownCPU(id) || t.DomainOf(id) != Unknown || t.NodeOf(id) != Unknown {
			tb.Errorf("CPU(%d) = %+v", id, c)
		}
	}
	if n := t.ActiveDomains(); n < 1 || n > t.NumDomains() {
		tb.Errorf("%d active domains of %d", n, t.NumDomains())
	}
	if d := t.CurrentDomain(); d < 0 || d >= t.NumDomains() {
		tb.Errorf("CurrentDomain() = %d of %d", d, t.NumDomains())
	}
	if n := t.CurrentNode(); !t.NUMANodes().Has(n) {
		tb.Errorf("CurrentNode() = %d of %s", n, t.NUMANodes())
	}
	var b strings.Builder
	if err := t.Tree(&b); err != nil || !strings.HasPrefix(b.String(), t.String()+"\n") {
		tb.Errorf("Tree: %v\n%s", err, b.String())
	}
}
