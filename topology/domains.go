package topology

// A Grouping says what makes a locality domain.
type Grouping int

const (
	// LLC: the CPUs of a NUMA node that share a last-level cache, if the node
	// has several such groups and one of them has several cores; else the node.
	// Caches that belong to one core each, as virtual machines and processors
	// with a memory-side cache show them, hold nothing that cores could share. A
	// cache that reaches over several nodes, as with sub-NUMA clustering, is cut
	// at their borders.
	LLC Grouping = iota
	// Node: the CPUs of a NUMA node.
	Node
	// None: the whole machine is one domain.
	None
)

// GroupBy returns t with other domains.
func (t *Topology) GroupBy(g Grouping) *Topology {
	u := newTopology(t.machine, g)
	if t.places != nil {
		u.places = u.spread()
	}
	return u
}

// group makes the domains. Each online CPU gets into exactly one. They are in
// the order of their nodes, and in a node in the order of their first CPUs.
func (t *Topology) group(g Grouping) []Domain {
	whole := Domain{Node: Unknown, LLC: Unknown, CPUs: t.online}
	if first := t.nodes[0]; first.CPUs.Equal(t.online) {
		whole.Node = first.ID
	}
	if g == None {
		return []Domain{whole}
	}
	var domains []Domain
	rest := t.online
	for _, n := range t.nodes {
		if n.CPUs.Empty() {
			continue
		}
		rest = rest.minus(n.CPUs)
		node := Domain{Node: n.ID, LLC: Unknown, CPUs: n.CPUs}
		domains = append(domains, t.split(node, g)...)
	}
	if !rest.Empty() { // CPUs of an unknown node
		domains = append(domains, t.split(Domain{Node: Unknown, LLC: Unknown, CPUs: rest}, g)...)
	}
	return domains
}

// split cuts a node by its last-level caches if g asks for it and it is worth it.
func (t *Topology) split(node Domain, g Grouping) []Domain {
	if g != LLC {
		return []Domain{node}
	}
	var groups []Domain
	shared := false
	rest := node.CPUs
	for !rest.Empty() {
		i := t.cpus[rest.Min()].LLC
		cpus := rest
		if i != Unknown {
			cpus = rest.and(t.llcs[i].CPUs)
			shared = shared || t.severalCores(cpus)
		} else {
			cpus = rest.minus(t.cachedCPUs())
		}
		groups = append(groups, Domain{Node: node.Node, LLC: i, CPUs: cpus})
		rest = rest.minus(cpus)
	}
	if len(groups) > 1 && !shared {
		return []Domain{node}
	}
	return groups
}

// cachedCPUs returns the CPUs whose last-level cache is known.
func (t *Topology) cachedCPUs() Set {
	var s Set
	for _, llc := range t.llcs {
		s = s.or(llc.CPUs)
	}
	return s
}

// severalCores reports whether cpus are more than the siblings of one core. CPUs
// whose core is unknown count as a core each.
func (t *Topology) severalCores(cpus Set) bool {
	first := t.cpus[cpus.Min()].Core
	if first == Unknown {
		return cpus.Len() > 1
	}
	return !cpus.minus(t.cores[first]).Empty()
}
