package topology

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// resetDiscovery makes the package as it was when it was imported, with another
// way of discovery, until the end of the test.
func resetDiscovery(t *testing.T, discover func() (*Topology, error)) {
	before, wasLoaded, wasClaimed := discovered, loaded.Load(), claimed.Load()
	t.Cleanup(func() {
		discovered = before
		loaded.Store(wasLoaded)
		claimed.Store(wasClaimed)
	})
	loaded.Store(nil)
	claimed.Store(false)
	discovered = sync.OnceValues(func() (*Topology, error) {
		m, err := discover()
		loaded.Store(m)
		return m, err
	})
}

func TestImportingReadsNothingAndStartsNothing(t *testing.T) {
	if atImport.loaded || atImport.claimed {
		t.Error("the machine was read before anybody asked")
	}
	if atImport.goroutines != 1 {
		t.Errorf("%d goroutines after importing", atImport.goroutines)
	}
}

// atImport is the state when this package's variables had just been initialized:
// files are initialized in the order of their dependencies.
var atImport = func() (s struct {
	loaded, claimed bool
	goroutines      int
}) {
	s.loaded, s.claimed, s.goroutines = loaded.Load() != nil, claimed.Load(), runtime.NumGoroutine()
	_ = unloaded
	return s
}()

func TestBeforeLoadingThereIsOneDomain(t *testing.T) {
	resetDiscovery(t, func() (*Topology, error) { return nil, errors.New("nobody shall ask") })
	m := Ready()
	checkInvariants(t, m)
	if m.NumDomains() != 1 || CurrentDomain() != 0 || CurrentNode() != 0 || m.Online().Len() != min(runtime.NumCPU(), MaxCPU+1) {
		t.Errorf("%v: domain %d, node %d", m, CurrentDomain(), CurrentNode())
	}
}

func TestLoadDoesNotWaitForAnotherCaller(t *testing.T) {
	machine, err := Synthetic(Shape{Packages: 2})
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan bool), make(chan error)
	resetDiscovery(t, func() (*Topology, error) {
		asked <- true
		return machine, <-answer
	})

	first := make(chan *Topology)
	go func() { first <- Load() }()
	<-asked
	if m := Load(); m != unloaded || m != Ready() {
		t.Errorf("second Load = %v while the first one reads", m)
	}
	type result struct {
		m   *Topology
		err error
	}
	waited := make(chan result)
	go func() {
		m, err := Get()
		waited <- result{m, err}
	}()
	select {
	case r := <-waited:
		t.Errorf("Get = %v before the machine has been read", r)
	default:
	}
	problem := errors.New("a problem")
	answer <- problem
	if m := <-first; m != machine {
		t.Errorf("first Load = %v", m)
	}
	if r := <-waited; r.m != machine || r.err != problem {
		t.Errorf("Get = %v, %v", r.m, r.err)
	}
	if Load() != machine || Ready() != machine {
		t.Errorf("afterwards Load = %v, Ready = %v", Load(), Ready())
	}
}

func TestThisMachine(t *testing.T) {
	m, err := discover(lookupIn(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, m)
	if n := m.Allowed().Len(); n != runtime.NumCPU() {
		t.Errorf("%d CPUs allowed, runtime.NumCPU is %d", n, runtime.NumCPU())
	}
	var b strings.Builder
	m.Tree(&b)
	t.Logf("\n%s", b.String())

	if runtime.GOOS != "linux" {
		return
	}
	counting := &countingFS{FS: os.DirFS("/")}
	if _, err := readTree(counting, m.Allowed()); err != nil {
		t.Error(err)
	}
	if n := counting.opens.Load(); n > maxOpens {
		t.Errorf("%d opens, want at most %d", n, maxOpens)
	} else {
		t.Logf("%d opens", n)
	}
}
