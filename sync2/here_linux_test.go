//go:build !sync2_std && !sim

package sync2

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
	"github.com/hqsync/hqsync/topology"
)

// A mutex is tagged with the NUMA node where it became contended. Its waiters are
// found there, wherever they and the owner run.
func TestTagIsTheNodeOfTheFirstWaiter_AllAreFound(t *testing.T) {
	machine, err := topology.Get()
	if err != nil {
		t.Fatal(err)
	}
	numatest.Need(t, machine.NUMANodes().Len())
	for first := range machine.NUMANodes().All() {
		var m Mutex
		var wg sync.WaitGroup
		waiters := 0
		wait := func(node int) {
			n, _ := machine.NUMANode(node)
			if n.CPUs.Empty() {
				return
			}
			waiters++
			wg.Go(func() {
				if err := numatest.On(n.CPUs.All(), func() { m.Lock(); m.Unlock() }); err != nil {
					t.Error(err)
				}
			})
			awaitParked(t, &m, waiters)
		}
		m.Lock()
		wait(first)
		for node := range machine.NUMANodes().All() {
			wait(node)
			wait(node)
		}
		if tag := m.tag.Load() & tagNode; waiters > 0 && tag != 1+uint32(first) {
			t.Errorf("contended on node %d: tag %d", first, tag)
		}
		for node := range machine.NUMANodes().All() {
			if found := parking.Default().Waiting(m.key(1 + uint32(node))); found != (node == first) {
				t.Errorf("contended on node %d: waiters on node %d: %v", first, node, found)
			}
		}
		m.Unlock()
		wg.Wait()
	}
}

// awaitParked waits until n goroutines are parked on m.
func awaitParked(t *testing.T, m *Mutex, n int) {
	for deadline := time.Now().Add(time.Minute); parkedOn(m) < n; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are parked, not %d", parkedOn(m), n)
		}
	}
}

// The first mutex to become contended in a process is tagged before anybody has
// read the machine; it goes to node 0. Later ones go where they are contended.
func TestFirstTagOfAProcess_IsNodeZero(t *testing.T) {
	t.Setenv("SYNC2", "topology=4x2")
	if !inChild(t, 1) {
		return
	}
	if n := topology.Ready().NUMANodes().Len(); n != 1 {
		t.Fatalf("the machine has been read before anybody parked: %d nodes", n)
	}
	runtime.GOMAXPROCS(4) // Ps stand for CPUs, but in the portable build
	tags := map[uint32]bool{}
	contend := func() uint32 {
		var m Mutex
		var wg sync.WaitGroup
		m.Lock()
		wg.Go(func() { m.Lock(); m.Unlock() })
		for m.tag.Load()&tagNode == 0 { // to look for waiters would make the table, and read the machine
			time.Sleep(10 * time.Microsecond)
		}
		awaitParked(t, &m, 1)
		tag := m.tag.Load() & tagNode
		m.Unlock()
		wg.Wait()
		return tag
	}
	if tag := contend(); tag != 1 {
		t.Errorf("the first tag is %d", tag)
	}
	if n := topology.Ready().NUMANodes().Len(); n != 4 {
		t.Fatalf("the machine has %d nodes after the first wait, not 4", n)
	}
	several := rt.Pinnable || runtime.NumCPU() > 1
	for begin := time.Now(); len(tags) == 0 || several && len(tags) < 2 && time.Since(begin) < time.Minute; {
		tags[contend()] = true // all on one CPU, as long as others keep the other one busy
	}
	for tag := range tags {
		if tag < 1 || tag > 4 {
			t.Errorf("tag %d on a machine of 4 nodes", tag)
		}
	}
	if len(tags) < 2 && several {
		t.Errorf("all tags are %v, although several Ps, or CPUs, were in use", tags)
	}
}
