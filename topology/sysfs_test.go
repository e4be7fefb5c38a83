package topology

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestGarbageIsAnErrorThatNamesTheFile(t *testing.T) {
	const (
		cpu  = "sys/devices/system/cpu/"
		node = "sys/devices/system/node/"
	)
	for name, c := range map[string]struct {
		machine string
		files   map[string]any
		want    string
	}{
		"online":               {"two-sockets", map[string]any{cpu + "online": "zero"}, `topology: sys/devices/system/cpu/online: item "zero" of "zero": "zero" is not a number`},
		"online-binary":        {"two-sockets", map[string]any{cpu + "online": "\x7fELF\x02\x01"}, `cpu/online: item "\x7fELF\x02\x01"`},
		"online-huge":          {"two-sockets", map[string]any{cpu + "online": "0-4294967295"}, `cpu/online: item "0-4294967295" of "0-4294967295": 4294967295 is above the limit 8191`},
		"online-empty":         {"two-sockets", map[string]any{cpu + "online": ""}, `topology: the tree names no CPU: neither sys/devices/system/cpu/online nor proc/self does`},
		"online-endless":       {"two-sockets", map[string]any{cpu + "online": strings.Repeat("0,", 1<<16)}, `cpu/online: longer than 65536 bytes`},
		"possible":             {"two-sockets", map[string]any{cpu + "possible": "5-2"}, `cpu/possible: item "5-2" of "5-2" ends before it starts`},
		"affinity":             {"two-sockets", map[string]any{"proc/self/status": "Cpus_allowed_list:\tmany\n"}, `proc/self/status: item "many"`},
		"affinity-elsewhere":   {"two-sockets", map[string]any{"proc/self/status": "Cpus_allowed_list:\t64-70\n"}, `topology: none of the CPUs that proc/self allows is online, which are "0-63"`},
		"cpuset":               {"container-cgroup-v2", map[string]any{"sys/fs/cgroup/cpuset.cpus.effective": "0-"}, `cpuset.cpus.effective: item "0-"`},
		"nodes":                {"two-sockets", map[string]any{node + "online": "0-1024"}, `node/online: item "0-1024" of "0-1024": 1024 is above the limit 1023`},
		"nodes-possible":       {"two-sockets", map[string]any{node + "possible": "?"}, `node/possible: item "?"`},
		"nodes-memory":         {"two-sockets", map[string]any{node + "has_memory": "a"}, `node/has_memory: item "a"`},
		"cpu-in-two-nodes":     {"two-sockets", map[string]any{node + "node1/cpulist": "15-31,48-63"}, `node1/cpulist: CPUs "15" are in another NUMA node too`},
		"distance-word":        {"two-sockets", map[string]any{node + "node0/distance": "10 far"}, `node0/distance: "far" is not a distance from 0 to 255`},
		"distance-large":       {"two-sockets", map[string]any{node + "node0/distance": "10 256"}, `node0/distance: "256" is not a distance`},
		"distance-negative":    {"two-sockets", map[string]any{node + "node0/distance": "10 -1"}, `node0/distance: "-1" is not a distance`},
		"distance-short":       {"two-sockets", map[string]any{node + "node1/distance": "10"}, `node1/distance: 1 distances in "10" for 2 online NUMA nodes`},
		"distance-long":        {"two-sockets", map[string]any{node + "node1/distance": "10 20 30"}, `node1/distance: 3 distances in "10 20 30" for 2 online NUMA nodes`},
		"classes":              {"hybrid-intel", map[string]any{"sys/devices/cpu_atom/cpus": "12..21"}, `cpu_atom/cpus: item "12..21"`},
		"capacity":             {"hybrid-arm", map[string]any{cpu + "cpu0/cpu_capacity": "-1"}, `cpu0/cpu_capacity: "-1" is not a number from 0 to 1048576`},
		"siblings":             {"two-sockets", map[string]any{cpu + "cpu0/topology/thread_siblings_list": "0+32"}, `cpu0/topology/thread_siblings_list: item "0+32"`},
		"siblings-without-own": {"two-sockets", map[string]any{cpu + "cpu0/topology/thread_siblings_list": "1,33"}, `cpu0/topology/thread_siblings_list: "1,33" lacks CPU 0 itself`},
		"cache-level":          {"two-sockets", map[string]any{cpu + "cpu0/cache/index3/level": "L3"}, `index3/level: "L3" is not a number from 1 to 15`},
		"cache-level-zero":     {"two-sockets", map[string]any{cpu + "cpu0/cache/index3/level": "0"}, `index3/level: "0" is not a number from 1 to 15`},
		"cache-size":           {"two-sockets", map[string]any{cpu + "cpu0/cache/index3/size": "22 MB"}, `index3/size: "22 MB" is not a size such as 32768K`},
		"cache-size-huge":      {"two-sockets", map[string]any{cpu + "cpu0/cache/index3/size": "4294967296K"}, `index3/size: "4294967296K" is not a size`},
		"cache-line":           {"two-sockets", map[string]any{cpu + "cpu0/cache/index3/coherency_line_size": "1e9"}, `coherency_line_size: "1e9" is not a number from 1 to 4096`},
		"cache-shared":         {"two-sockets", map[string]any{cpu + "cpu16/cache/index3/shared_cpu_list": "ffff"}, `cpu16/cache/index3/shared_cpu_list: item "ffff"`},
		"cache-without-own":    {"two-sockets", map[string]any{cpu + "cpu16/cache/index3/shared_cpu_list": "17"}, `cpu16/cache/index3/shared_cpu_list: "17" lacks CPU 16 itself`},
		"package":              {"two-sockets", map[string]any{cpu + "cpu16/topology/physical_package_id": "one"}, `cpu16/topology/physical_package_id: "one" is not a number from -1 to 2147483647`},
		"package-without-own":  {"two-sockets", map[string]any{cpu + "cpu16/topology/core_siblings_list": "0"}, `cpu16/topology/core_siblings_list: "0" lacks CPU 16 itself`},
	} {
		t.Run(name, func(t *testing.T) {
			tree, _ := readMachineFile(t, c.machine)
			m, err := DiscoverFS(overlay(tree, c.files))
			if err == nil {
				t.Fatalf("no error, but %v", m)
			}
			if !strings.HasPrefix(err.Error(), "topology: ") || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 250 {
				t.Errorf("error\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	t.Run("empty-tree", func(t *testing.T) {
		if _, err := DiscoverFS(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "names no CPU") {
			t.Errorf("error %v", err)
		}
	})
}

// brokenFS fails to read the files whose names contain part; they exist.
type brokenFS struct {
	fs.FS
	part string
}

type brokenFile struct{ fs.File }

var errBroken = errors.New("input/output error")

func (brokenFile) Read([]byte) (int, error) { return 0, errBroken }

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err == nil && strings.Contains(name, b.part) {
		return brokenFile{f}, nil
	}
	return f, err
}

// What is missing is unknown and makes nothing else unknown or wrong; a file that
// cannot be read counts as missing.
func TestMissingFilesLeaveThingsUnknown(t *testing.T) {
	for part, check := range map[string]func(t *testing.T, m *Topology){
		"cpu/possible": func(t *testing.T, m *Topology) { checkSet(t, "possible", m.Possible(), "0-383") },
		"cpu/online": func(t *testing.T, m *Topology) { // the affinity names them
			checkSet(t, "online", m.Online(), "0-383")
		},
		"proc/self": func(t *testing.T, m *Topology) { checkSet(t, "allowed", m.Allowed(), "0-383") },
		"system/node": func(t *testing.T, m *Topology) {
			n, _ := m.NUMANode(0)
			checkSet(t, "nodes", m.NUMANodes(), "0")
			checkSet(t, "CPUs of the only node", n.CPUs, "0-383")
			if m.NumDomains() != 24 || m.Distance(0, 0) != Unknown {
				t.Errorf("%d domains, distance %d", m.NumDomains(), m.Distance(0, 0))
			}
		},
		"node/possible": func(t *testing.T, m *Topology) { checkSet(t, "possible", m.PossibleNUMANodes(), "0-7") },
		"has_memory": func(t *testing.T, m *Topology) {
			if n, _ := m.NUMANode(7); !n.HasMemory {
				t.Error("node 7 has no memory")
			}
		},
		"node3/cpulist": func(t *testing.T, m *Topology) { // its CPUs are in no node, but in domains
			if m.NodeOf(72) != Unknown || m.NumDomains() != 24 || m.Domain(m.DomainOf(72)).Node != Unknown {
				t.Errorf("CPU 72 is in node %d, domain %+v", m.NodeOf(72), m.Domain(m.DomainOf(72)))
			}
		},
		"distance": func(t *testing.T, m *Topology) {
			if d := m.Distance(0, 0); d != Unknown {
				t.Errorf("distance %d", d)
			}
		},
		"smt/active": func(t *testing.T, m *Topology) {
			if m.NumCores() != 192 {
				t.Errorf("%d cores", m.NumCores())
			}
		},
		"thread_siblings_list": func(t *testing.T, m *Topology) {
			if m.NumCores() != 0 || m.CPU(0).Core != Unknown || m.NumDomains() != 24 {
				t.Errorf("%d cores, %d domains", m.NumCores(), m.NumDomains())
			}
		},
		"/cache/": func(t *testing.T, m *Topology) {
			if m.NumLLCs() != 0 || m.CPU(0).LLC != Unknown || m.CacheLine() != Unknown || m.NumDomains() != 8 {
				t.Errorf("%d last-level caches, line %d, %d domains", m.NumLLCs(), m.CacheLine(), m.NumDomains())
			}
		},
		"index3": func(t *testing.T, m *Topology) { // L2 is then the last level, and private
			if m.NumLLCs() != 192 || m.NumDomains() != 8 {
				t.Errorf("%d last-level caches, %d domains", m.NumLLCs(), m.NumDomains())
			}
		},
		"index3/size": func(t *testing.T, m *Topology) {
			if m.LLC(0).Size != Unknown {
				t.Errorf("size %d", m.LLC(0).Size)
			}
		},
		"line_size": func(t *testing.T, m *Topology) {
			if m.CacheLine() != Unknown || m.NumLLCs() != 24 {
				t.Errorf("line %d, %d last-level caches", m.CacheLine(), m.NumLLCs())
			}
		},
		"core_siblings_list": func(t *testing.T, m *Topology) {
			if m.CPU(0).Package != Unknown {
				t.Errorf("package %d", m.CPU(0).Package)
			}
		},
		"physical_package_id": func(t *testing.T, m *Topology) {
			if m.CPU(0).Package != Unknown {
				t.Errorf("package %d", m.CPU(0).Package)
			}
		},
	} {
		t.Run(strings.ReplaceAll(strings.Trim(part, "/"), "/", "-"), func(t *testing.T) {
			whole, _ := readMachineFile(t, "epyc-9654-nps4")
			tree := fstest.MapFS{}
			for name, file := range whole {
				if !strings.Contains(name, part) {
					tree[name] = file
				}
			}
			if len(tree) == len(whole) {
				t.Fatal("nothing is missing")
			}
			for what, tree := range map[string]fs.FS{"missing": tree, "unreadable": brokenFS{whole, part}} {
				m, err := DiscoverFS(tree)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				checkInvariants(t, m)
				check(t, m)
			}
		})
	}
}

// The pattern by which siblings are numbered is checked, not trusted.
func TestSiblingsWithHoles(t *testing.T) {
	for name, c := range map[string]struct {
		cores []string // all of them
		opens int      // of thread_siblings_list at most
	}{
		"adjacent":                    {[]string{"0-1", "2-3", "4-5", "6-7"}, 2},
		"adjacent, holes":             {[]string{"0-1", "3", "4-5", "6", "8-9"}, 4},
		"adjacent, first is halved":   {[]string{"1", "2-3", "4-5", "6-7"}, 3},
		"strided":                     {[]string{"0,4", "1,5", "2,6", "3,7"}, 2},
		"strided, holes":              {[]string{"0,4", "5", "2,6", "3,7"}, 3},
		"strided, first is halved":    {[]string{"0", "1,5", "2,6", "3,7"}, 3},
		"four threads, holes":         {[]string{"0,2,4,6", "1,5,7"}, 4},
		"first of four threads holed": {[]string{"0,4,6", "1,3,5,7"}, 3},
		"both ends are halved":        {[]string{"0", "1,5", "2,6", "7"}, 5},
		"no pattern":                  {[]string{"0,7", "1-2", "3", "4-6"}, 6},
		"mixed without classes":       {[]string{"0-1", "2-3", "4", "5"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			var online Set
			for _, list := range c.cores {
				core := mustParse(t, list)
				online = online.or(core)
				for cpu := range core.All() {
					tree["sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/topology/thread_siblings_list"] = &fstest.MapFile{Data: []byte(list)}
				}
			}
			tree["sys/devices/system/cpu/online"] = &fstest.MapFile{Data: []byte(online.String())}
			counting := &countingFS{FS: tree}
			m, err := DiscoverFS(counting)
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, m)
			if m.NumCores() != len(c.cores) {
				t.Errorf("%d cores, want %d", m.NumCores(), len(c.cores))
			}
			for _, list := range c.cores {
				for cpu := range mustParse(t, list).All() {
					checkSet(t, "siblings of CPU "+strconv.Itoa(cpu), m.Core(m.CPU(cpu).Core), list)
				}
			}
			opens := 0
			for _, name := range counting.names {
				if strings.HasSuffix(name, "thread_siblings_list") {
					opens++
				}
			}
			if opens > c.opens {
				t.Errorf("%d opens, want at most %d", opens, c.opens)
			}
		})
	}
}

// A machine without any regularity is read in part, not for ever.
func TestOpensAreBounded(t *testing.T) {
	tree := fstest.MapFS{"sys/devices/system/cpu/online": {Data: []byte("0-2047")}, "sys/devices/system/node/online": {Data: []byte("0-255")}}
	for cpu := range 2048 {
		dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu)
		list := &fstest.MapFile{Data: []byte(strconv.Itoa(cpu) + "," + strconv.Itoa(cpu^0x7ff))}
		tree[dir+"/topology/thread_siblings_list"] = list
		tree[dir+"/topology/core_siblings_list"] = list
		tree[dir+"/cache/index0/shared_cpu_list"] = list
		tree[dir+"/cache/index0/level"] = &fstest.MapFile{Data: []byte("2")}
	}
	counting := &countingFS{FS: tree}
	m, err := DiscoverFS(counting)
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, m)
	if n := counting.opens.Load(); n > maxOpens {
		t.Errorf("%d opens, want at most %d", n, maxOpens)
	}
}

func TestTheKernelsAnswerBeatsAMadeUpSysfs(t *testing.T) {
	tree, _ := readMachineFile(t, "epyc-9654-nps4")
	tree = overlay(tree, map[string]any{"sys/devices/system/cpu/online": "0-3\n"}) // as lxcfs makes it up for 4 CPUs' worth of time
	m, err := readTree(tree, mustParse(t, "96-99"))
	if err != nil {
		t.Fatal(err)
	}
	topo := newTopology(m, LLC)
	checkInvariants(t, topo)
	checkSet(t, "allowed", topo.Allowed(), "96-99")
	checkSet(t, "online", topo.Online(), "0-3,96-99")
	if n := topo.NodeOf(97); n != 4 {
		t.Errorf("CPU 97 is in node %d, want 4", n)
	}
	if topo.ActiveDomains() != 1 {
		t.Errorf("%d active domains, want 1", topo.ActiveDomains())
	}
}

// FuzzSysfsTree: any tree gives a topology that does not contradict itself or an
// error that begins with the package, within the bound on opens.
func FuzzSysfsTree(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err != nil {
			f.Fatal(err)
		} else if len(b) < 10_000 { // the fuzzer is no good at larger ones
			f.Add(string(b))
		}
	}
	include := func(string) (string, error) { return "", errors.New("no include here") }
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := parseTree(text, include)
		if err != nil {
			return
		}
		counting := &countingFS{FS: tree}
		m, err := DiscoverFS(counting)
		if n := counting.opens.Load(); n > maxOpens {
			t.Errorf("%d opens", n)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "topology: ") || m != nil {
				t.Errorf("%v, %v", m, err)
			}
			return
		}
		checkInvariants(t, m)
		for _, g := range []Grouping{Node, None} {
			checkInvariants(t, m.GroupBy(g))
		}
	})
}
