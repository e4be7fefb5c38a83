package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// readClasses finds the kinds of cores of a hybrid machine: by the performance
// counters of each kind where they are named so (Intel), else by the capacities
// that the scheduler uses.
func (r *reader) readClasses() {
	rest := r.m.online
	for _, pmu := range []string{"cpu_core", "cpu_atom", "cpu_lowpower"} {
		cpus, ok := r.list("sys/devices/"+pmu+"/cpus", MaxCPU)
		if !ok {
			break
		}
		if cpus = cpus.and(rest); !cpus.Empty() {
			r.m.classes = append(r.m.classes, cpus)
			rest = rest.minus(cpus)
		}
	}
	if r.m.classes == nil {
		r.readCapacities()
	} else if !rest.Empty() {
		r.m.classes = append(r.m.classes, rest)
	}
}

// readCapacities looks at each CPU only if the first and the last one differ:
// firmware numbers the kinds of cores one after the other. A server whose CPUs
// merely vary has no kinds.
func (r *reader) readCapacities() {
	capacity := func(cpu int) int { return r.number(cpuFile(cpu, "cpu_capacity"), 0, 1<<20) }
	online := r.m.online
	first := capacity(online.Min())
	if first == Unknown || online.Len() > maxHybrid || capacity(online.Max()) == first {
		return
	}
	cpus := map[int]*Set{}
	for cpu := range online.All() {
		c := capacity(cpu)
		if cpus[c] == nil {
			cpus[c] = new(Set)
		}
		cpus[c].addRange(cpu, cpu)
	}
	var capacities []int
	for c := range cpus {
		capacities = append(capacities, c)
	}
	slices.Sort(capacities)
	slices.Reverse(capacities)
	for _, c := range capacities {
		r.m.classes = append(r.m.classes, *cpus[c])
	}
}

// regions cuts the online CPUs by NUMA node and, on a hybrid machine, by class.
// Within a region CPUs are alike and numbered by a regular pattern, so that one of
// them tells about the others.
func (r *reader) regions(class Set) []Set {
	var list []Set
	for _, n := range r.m.nodes {
		if cpus := class.and(n.CPUs); !cpus.Empty() {
			list = append(list, cpus)
			class = class.minus(cpus)
		}
	}
	if !class.Empty() {
		list = append(list, class)
	}
	return list
}

// kinds returns the classes, or all online CPUs as the only one.
func (r *reader) kinds() []Set {
	if r.m.classes == nil {
		return []Set{r.m.online}
	}
	return r.m.classes
}

// readCores finds the SMT siblings.
func (r *reader) readCores() {
	smt, _ := r.text(cpuDir + "/smt/active")
	if smt == "0" {
		for cpu := range r.m.online.All() {
			r.m.cores = append(r.m.cores, setOf(cpu))
		}
		return
	}
	for _, kind := range r.kinds() {
		cores, ok := r.repeatedCores(kind)
		if alike := len(cores) == kind.Len(); alike && smt == "1" && r.m.classes == nil {
			ok = false // there are siblings somewhere
		}
		if !ok {
			cores, _ = r.eachCore(nil, kind)
		}
		r.m.cores = append(r.m.cores, cores...)
	}
}

// siblings returns the CPUs of one core, and whether the tree tells them.
func (r *reader) siblings(cpu int, kind Set) (Set, bool) {
	name := cpuFile(cpu, "topology/thread_siblings_list")
	s, ok := r.list(name, MaxCPU)
	if ok && !s.Has(cpu) {
		r.fail(name, fmt.Errorf("%q lacks CPU %d itself", abridge(s.String()), cpu))
		ok = false
	}
	return s.and(kind), ok
}

// repeatedCores asks the first and the last CPU of a kind for their siblings, and
// one between them if these have none; repeats the longest list over the regions;
// and asks each CPU that it does not fit, because a sibling is offline. It reports
// false if an answer contradicts the pattern.
func (r *reader) repeatedCores(kind Set) (cores []Set, ok bool) {
	var pattern Set
	asked := []int{kind.Min(), kind.Max(), middle(kind)}
	var answers []Set
	for i, cpu := range asked {
		if i == 2 && pattern.Len() > 1 {
			break
		}
		core, ok := r.siblings(cpu, kind)
		if !ok {
			return nil, i == 0 // true: the tree does not speak of cores
		}
		answers = append(answers, core)
		if core.Len() > pattern.Len() {
			pattern = core
		}
	}
	var rest Set
	for _, region := range r.regions(kind) {
		fit, unfit := repeat(pattern, region)
		cores, rest = append(cores, fit...), rest.or(unfit)
	}
	cores, ok = r.eachCore(cores, rest)
	for _, core := range answers {
		ok = ok && slices.ContainsFunc(cores, core.Equal)
	}
	return cores, ok
}

// middle returns the id in the middle of a set.
func middle(s Set) int {
	id, _ := nth(s, s.Len()/2)
	return id
}

// repeat moves pattern, the CPUs of one core, along the region. It returns the
// cores so made and the CPUs left over.
func repeat(pattern, region Set) (cores []Set, rest Set) {
	base, size := pattern.Min(), pattern.Len()
	adjacent := pattern.Max()-base == size-1
	rest = region
	for cpu := range region.All() {
		// Siblings with adjacent numbers begin at multiples of their count; after
		// one that is offline the others would pair up wrongly.
		if !rest.Has(cpu) || adjacent && (cpu-base)%size != 0 {
			continue
		}
		var core Set
		for sibling := range pattern.All() {
			core.addRange(cpu+sibling-base, cpu+sibling-base)
		}
		if core.minus(rest).Empty() {
			cores = append(cores, core)
			rest = rest.minus(core)
		}
	}
	return cores, rest
}

// eachCore appends the cores of rest, asking one CPU of each, until the tree is
// silent about one. It reports false if a core reaches out of rest.
func (r *reader) eachCore(cores []Set, rest Set) (_ []Set, contained bool) {
	contained = true
	for !rest.Empty() {
		core, ok := r.siblings(rest.Min(), r.m.online)
		if !ok {
			break
		}
		contained = contained && core.minus(rest).Empty()
		core = core.and(rest)
		cores = append(cores, core)
		rest = rest.minus(core)
	}
	return cores, contained
}

// coreOf returns the core of a CPU; the CPU alone if it is not known.
func (r *reader) coreOf(cpu int) Set {
	for _, core := range r.m.cores {
		if core.Has(cpu) {
			return core
		}
	}
	return setOf(cpu)
}

// lastLevel says where a CPU describes its last-level cache.
type lastLevel struct {
	dir   string // index3
	level int    // 0 if there is no cache
	size  int
}

// readCaches finds the last-level caches, asking one CPU of each. All CPUs of a
// kind describe theirs in the same place, but for the low-power cores of some
// hybrid machines, which lack the outermost cache.
func (r *reader) readCaches() {
	var cached Set
	add := func(c Cache) {
		r.m.llcs = append(r.m.llcs, c)
		cached = cached.or(c.CPUs)
	}
	for _, kind := range r.kinds() {
		var usual lastLevel
		for _, region := range r.regions(kind) {
			private := 0 // caches in a row that serve one core only
			for rest := region.minus(cached); !rest.Empty() && private < 2; rest = region.minus(cached) {
				cpu := rest.Min()
				if usual.level == 0 {
					usual = r.lastLevel(cpu)
				}
				c := r.cache(usual, cpu)
				if c.CPUs = c.CPUs.minus(cached); c.CPUs.Empty() {
					break
				}
				add(c)
				private++
				if !c.CPUs.minus(r.coreOf(cpu)).Empty() {
					private = 0
				}
			}
			// Two private caches are enough to know that all of the region are.
			for rest := region.minus(cached); private == 2 && !rest.Empty(); rest = rest.minus(cached) {
				add(Cache{usual.level, usual.size, r.coreOf(rest.Min()).and(rest)})
			}
		}
	}
}

// cache reads the last-level cache of a CPU, usually at the given place. Its CPUs
// are empty if it is unknown.
func (r *reader) cache(at lastLevel, cpu int) Cache {
	file := func() string { return cpuFile(cpu, "cache/"+at.dir+"/shared_cpu_list") }
	if at.level == 0 {
		return Cache{}
	}
	cpus, ok := r.list(file(), MaxCPU)
	if !ok {
		if at = r.lastLevel(cpu); at.level == 0 {
			return Cache{}
		}
		cpus, ok = r.list(file(), MaxCPU)
	}
	if ok && !cpus.Has(cpu) {
		r.fail(file(), fmt.Errorf("%q lacks CPU %d itself", abridge(cpus.String()), cpu))
	}
	return Cache{at.level, at.size, cpus.and(r.m.online)}
}

// lastLevel looks through the caches of a CPU for the outermost one that holds
// data, and for the longest cache line.
func (r *reader) lastLevel(cpu int) lastLevel {
	var last lastLevel
	for i := range maxIndex {
		dir := fmt.Sprintf("index%d", i)
		level := r.number(cpuFile(cpu, "cache/"+dir+"/level"), 1, 15)
		if level == Unknown {
			break
		}
		if kind, _ := r.text(cpuFile(cpu, "cache/"+dir+"/type")); kind == "Instruction" {
			continue
		}
		line := r.number(cpuFile(cpu, "cache/"+dir+"/coherency_line_size"), 1, 1<<12)
		r.m.cacheLine = max(r.m.cacheLine, line)
		if level > last.level {
			last = lastLevel{dir: dir, level: level}
		}
	}
	if last.level != 0 {
		last.size = r.size(cpuFile(cpu, "cache/"+last.dir+"/size"))
	}
	return last
}

// size returns the number of bytes in a file that counts them in K, or Unknown.
func (r *reader) size(name string) int {
	text, ok := r.text(name)
	if !ok {
		return Unknown
	}
	digits, ok := strings.CutSuffix(text, "K")
	n, err := strconv.ParseUint(digits, 10, 21)
	if !ok || err != nil {
		r.fail(name, fmt.Errorf("%q is not a size such as 32768K", abridge(text)))
		return Unknown
	}
	return int(n) << 10
}

// readPackages finds the sockets. Virtual machines may pretend that each CPU has
// one of its own: more than maxPackages are none.
func (r *reader) readPackages() {
	var packages []packageInfo
	for rest := r.m.online; !rest.Empty(); {
		cpu := rest.Min()
		name := cpuFile(cpu, "topology/core_siblings_list")
		cpus, ok := r.list(name, MaxCPU)
		if !ok || len(packages) == maxPackages {
			return
		}
		if !cpus.Has(cpu) {
			r.fail(name, fmt.Errorf("%q lacks CPU %d itself", abridge(cpus.String()), cpu))
			return
		}
		id := r.number(cpuFile(cpu, "topology/physical_package_id"), Unknown, 1<<31-1)
		packages = append(packages, packageInfo{id, cpus.and(rest)})
		rest = rest.minus(cpus)
	}
	r.m.packages = packages
}
