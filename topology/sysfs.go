package topology

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// DiscoverFS reads the machine that the tree describes: the root file system of
// a Linux machine, or a copy of the files of /sys/devices and /proc/self that
// matter, and of nothing else. It does not look at the environment. Domains are
// made by [LLC].
//
// A file that is missing or cannot be read leaves unknown what it would have
// told. A file that makes no sense is an error that names it and quotes it; so is
// a tree that names no CPU at all.
func DiscoverFS(tree fs.FS) (*Topology, error) {
	m, err := readTree(tree, Set{})
	if err != nil {
		return nil, err
	}
	return newTopology(m, LLC), nil
}

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"

	// maxOpens bounds the work on a machine of a kind that nobody has foreseen,
	// and on garbage. A tree that is not read to its end is unknown in part.
	maxOpens = 256

	// maxFile bounds one file. The longest honest one is a list of every second
	// of MaxCPU CPUs.
	maxFile = 64 << 10

	// maxIndex bounds the caches of one CPU: two on level 1 and one on each level
	// up to 4 are the most that exist.
	maxIndex = 8

	// maxHybrid is the number of CPUs up to which a machine may be hybrid by the
	// capacities of its CPUs.
	maxHybrid = 64

	// maxPackages bounds the sockets: 32 is the most that a machine has had.
	maxPackages = 32
)

// reader reads a tree into a machine. The first error stays in err, after which
// nothing is read any more.
type reader struct {
	tree  fs.FS
	opens int
	err   error
	m     machine
}

// readTree reads everything. affinity, if not empty, are the CPUs that the
// process may use and that are certainly online, asked from the kernel; otherwise
// the tree's /proc/self says it.
func readTree(tree fs.FS, affinity Set) (machine, error) {
	r := &reader{tree: tree}
	r.readCPUs(affinity)
	if r.err == nil {
		r.readNodes()
		r.readClasses()
		r.readCores()
		r.readCaches()
		r.readPackages()
	}
	if r.err != nil {
		return machine{}, fmt.Errorf("topology: %w", r.err)
	}
	return r.m, nil
}

// text returns the content of a file without surrounding space, and whether
// there is one.
func (r *reader) text(name string) (string, bool) {
	if r.err != nil || r.opens == maxOpens {
		return "", false
	}
	r.opens++
	f, err := r.tree.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", false
	}
	if len(b) > maxFile {
		r.fail(name, fmt.Errorf("longer than %d bytes", maxFile))
		return "", false
	}
	return strings.TrimSpace(string(b)), true
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
}

// list returns the set in a file, and whether there is one.
func (r *reader) list(name string, max int) (Set, bool) {
	text, ok := r.text(name)
	if !ok {
		return Set{}, false
	}
	s, err := parseList(text, max)
	if err != nil {
		r.fail(name, err)
		return Set{}, false
	}
	return s, true
}

// number returns the decimal number in a file, between min and max, or Unknown.
func (r *reader) number(name string, min, max int) int {
	text, ok := r.text(name)
	if !ok {
		return Unknown
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < min || n > max {
		r.fail(name, fmt.Errorf("%q is not a number from %d to %d", abridge(text), min, max))
		return Unknown
	}
	return n
}

func cpuFile(cpu int, name string) string {
	return fmt.Sprintf("%s/cpu%d/%s", cpuDir, cpu, name)
}

// readCPUs finds the possible, online and allowed CPUs.
func (r *reader) readCPUs(affinity Set) {
	online, known := r.list(cpuDir+"/online", MaxCPU)
	possible, _ := r.list(cpuDir+"/possible", MaxCPU)
	allowed := affinity
	switch {
	case !affinity.Empty():
		// A container may see an online file that was made up for it, with as
		// many CPUs as it has time for. The kernel's answer is better.
		online = online.or(affinity)
	case known:
		allowed = online
		if said := r.treeAllowed(); !said.Empty() {
			allowed = said.and(online)
		}
	default:
		online = r.treeAllowed()
		allowed = online
	}
	switch {
	case r.err != nil:
		return
	case online.Empty():
		r.err = errors.New("the tree names no CPU: neither " + cpuDir + "/online nor proc/self does")
		return
	case allowed.Empty():
		r.err = fmt.Errorf("none of the CPUs that proc/self allows is online, which are %q", abridge(online.String()))
		return
	}
	source := "affinity"
	if known {
		source = "sysfs"
	}
	r.m = oneNode(source, online)
	r.m.allowed = allowed
	r.m.possible = possible.or(online)
}

// treeAllowed returns the CPUs that the process may use as the tree tells it;
// empty if it does not. The kernel keeps the affinity inside the cpuset, so the
// cpuset is of interest only where the affinity cannot be read.
func (r *reader) treeAllowed() Set {
	if s := r.statusAllowed(); !s.Empty() {
		return s
	}
	return r.cgroupAllowed()
}

// statusAllowed returns the affinity of the process.
func (r *reader) statusAllowed() Set {
	const name = "proc/self/status"
	text, ok := r.text(name)
	if !ok {
		return Set{}
	}
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			s, err := parseList(list, MaxCPU)
			if err != nil {
				r.fail(name, err)
			}
			return s
		}
	}
	return Set{}
}

// cgroupAllowed returns the cpuset of the cgroup of the process.
func (r *reader) cgroupAllowed() Set {
	text, ok := r.text("proc/self/cgroup")
	if !ok {
		return Set{}
	}
	unified := ""
	for line := range strings.Lines(text) {
		// hierarchy:controllers:path
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || !strings.HasPrefix(part[2], "/") {
			continue
		}
		switch {
		case slices.Contains(strings.Split(part[1], ","), "cpuset"):
			return r.cpuset("sys/fs/cgroup/cpuset", part[2], "cpuset.effective_cpus", "cpuset.cpus")
		case part[1] == "":
			unified = part[2]
		}
	}
	if unified == "" {
		return Set{}
	}
	return r.cpuset("sys/fs/cgroup", unified, "cpuset.cpus.effective")
}

// cpuset reads the first file that exists in the cgroup or, because a container
// sees its own cgroup as the root and a cgroup without cpuset has its parent's,
// in one of those above it.
func (r *reader) cpuset(mount, cgroup string, names ...string) Set {
	for cgroup = path.Clean(cgroup); ; cgroup = path.Dir(cgroup) {
		for _, name := range names {
			if s, ok := r.list(path.Join(mount, cgroup, name), MaxCPU); ok && !s.Empty() {
				return s
			}
		}
		if cgroup == "/" {
			return Set{}
		}
	}
}

// readNodes finds the NUMA nodes, their CPUs and distances.
func (r *reader) readNodes() {
	ids, ok := r.list(nodeDir+"/online", MaxNUMANode)
	if !ok || ids.Empty() {
		return // a kernel without NUMA, or no sysfs: the one node stays
	}
	possible, _ := r.list(nodeDir+"/possible", MaxNUMANode)
	memory, ok := r.list(nodeDir+"/has_memory", MaxNUMANode)
	if !ok {
		memory = ids
	}
	r.m.possibleNodes = possible.or(ids)
	r.m.nodes = nil
	rest := r.m.online
	for id := range ids.All() {
		name := fmt.Sprintf("%s/node%d/cpulist", nodeDir, id)
		cpus, _ := r.list(name, MaxCPU)
		cpus = cpus.and(r.m.online)
		if twice := cpus.minus(rest); !twice.Empty() {
			r.fail(name, fmt.Errorf("CPUs %q are in another NUMA node too", abridge(twice.String())))
		}
		rest = rest.minus(cpus)
		r.m.nodes = append(r.m.nodes, nodeInfo{NUMANode: NUMANode{ID: id, CPUs: cpus, HasMemory: memory.Has(id)}})
	}
	for i, n := range r.m.nodes {
		r.m.nodes[i].distance = r.distances(fmt.Sprintf("%s/node%d/distance", nodeDir, n.ID))
	}
}

// distances reads a row of the table, which has a number for each online node.
func (r *reader) distances(name string) []int {
	text, ok := r.text(name)
	if !ok {
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != len(r.m.nodes) {
		r.fail(name, fmt.Errorf("%d distances in %q for %d online NUMA nodes", len(fields), abridge(text), len(r.m.nodes)))
		return nil
	}
	row := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 8)
		if err != nil {
			r.fail(name, fmt.Errorf("%q is not a distance from 0 to 255", abridge(f)))
			return nil
		}
		row[i] = int(n)
	}
	return row
}
