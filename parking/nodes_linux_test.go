package parking_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/parking"
	"github.com/hqsync/hqsync/topology"
)

// Tests that need a machine with several NUMA nodes.

// severalNodes returns the machine and the ids of its nodes that have CPUs and
// memory, or skips the test.
func severalNodes(t *testing.T) (m *topology.Topology, ids []int) {
	t.Helper()
	m, err := topology.Get()
	if err != nil {
		t.Fatal(err)
	}
	for id := range m.NUMANodes().All() {
		if n, _ := m.NUMANode(id); n.HasMemory && !n.CPUs.Empty() {
			ids = append(ids, id)
		}
	}
	numatest.Need(t, len(ids))
	return m, ids
}

// onNode runs f on a NUMA node.
func onNode(t *testing.T, m *topology.Topology, id int, f func()) {
	t.Helper()
	n, _ := m.NUMANode(id)
	if err := numatest.On(n.CPUs.All(), f); err != nil {
		t.Error(err)
	}
}

// Each array's pages are on its node, whoever makes the table and whoever uses a
// page first; also after a resize with waiters on it.
func TestEachArrayIsOnItsNode(t *testing.T) {
	m, ids := severalNodes(t)
	var tab parking.Table
	check := func() {
		t.Helper()
		pages := 0
		for _, h := range slices.Concat(tab.Arrays(), tab.GlobalArrays()) {
			if !slices.Contains(ids, h.Node) {
				continue
			}
			for _, p := range h.Pages {
				pages++
				if got, err := parking.PageNode(p); err != nil || got != h.Node {
					t.Errorf("page %#x of node %d is on node %d, %v", p, h.Node, got, err)
				}
			}
		}
		t.Logf("%d pages on %d nodes", pages, len(ids))
	}
	for i, id := range ids {
		onNode(t, m, ids[len(ids)-1-i], func() {
			if err := tab.SetSlots(uint64(64<<(2*i)), 0); err != nil {
				t.Error(err)
			}
		})
		key := keys(t, 1)[0]
		key.Node = uint32(id) + 1
		var s *sleeper
		onNode(t, m, id, func() { s = sleep(&tab, key, parking.Options{}) })
		onNode(t, m, ids[0], check)
		tab.UnparkOne(key, nil)
		s.wait(t)
	}
}

// The word's page goes where its policy says, and its waiters with it: they are
// found there by whoever names the node, and by whoever asks the policy again,
// and wait on the node on which their word is.
func TestMPOL_WordsGoToTheirPolicysNode(t *testing.T) {
	m, ids := severalNodes(t)
	for _, id := range ids {
		for _, from := range ids {
			var tab parking.Table
			word := mapWord(t, policy{mode: parking.Preferred, nodes: []int{id}})
			pair := word.NUMAWord
			atomic.StoreInt32(&pair.Node, parking.NoNode)
			if got, err := parking.PageNode(word.Addr()); err != nil || got != id {
				t.Fatalf("the word's page is on node %d, %v", got, err)
			}
			wait := func(flags parking.Flags) (woken chan error) {
				woken = make(chan error, 1)
				go onNode(t, m, from, func() {
					woken <- tab.Wait(pair.Word(), 0, parking.AllBits, flags, parking.Limit{})
				})
				eventually(t, "the goroutine waits", func() bool { return tab.GlobalQueued(word.Addr(), id) == 1 })
				return woken
			}
			wake := func(flags parking.Flags, want int) {
				t.Helper()
				if n, err := tab.Wake(pair.Word(), 1, parking.AllBits, flags); n != want || err != nil {
					t.Errorf("node %d, from %d: wake with flags %#x: %d, %v, want %d", id, from, flags, n, err, want)
				}
			}

			// The policy is asked, and the word is left alone.
			first := wait(parking.MPOL | parking.Private)
			wake(parking.Private, 0)
			wake(parking.MPOL|parking.Private, 1)
			<-first
			if node := atomic.LoadInt32(&pair.Node); node != parking.NoNode {
				t.Errorf("MPOL alone has chosen node %d", node)
			}
			// Whoever names the node finds those who asked the policy.
			second := wait(parking.MPOL)
			atomic.StoreInt32(&pair.Node, int32(id))
			wake(parking.NUMA, 1)
			<-second
			// With both flags the policy's node is chosen, not the caller's.
			atomic.StoreInt32(&pair.Node, parking.NoNode)
			third := wait(parking.NUMA | parking.MPOL)
			if node := atomic.LoadInt32(&pair.Node); node != int32(id) {
				t.Errorf("policy %d, caller on %d: node %d was chosen", id, from, node)
			}
			wake(parking.NUMA, 1)
			<-third
		}
	}
}

// What is no preference of one node is none. Among these is the home node of BIND
// and PREFERRED_MANY: Linux goes by it, but has no call that tells it.
func TestMPOL_OtherPoliciesCountAsNone(t *testing.T) {
	_, ids := severalNodes(t)
	one, two := ids[1:2], ids[1:3]
	for name, p := range map[string]policy{
		"none":                      {mode: -1},
		"default":                   {mode: parking.DefaultPolicy},
		"local":                     {mode: parking.Local},
		"interleave":                {mode: parking.Interleave, nodes: two},
		"bind one":                  {mode: parking.Bind, nodes: one},
		"bind two":                  {mode: parking.Bind, nodes: two},
		"bind with home":            {mode: parking.Bind, nodes: two, home: true},
		"preferred many":            {mode: parking.PreferredMany, nodes: two},
		"preferred many, with home": {mode: parking.PreferredMany, nodes: two, home: true},
	} {
		t.Run(name, func(t *testing.T) {
			var tab parking.Table
			b := &bench{t, &tab, make(chan int, 1)}
			pair := mapWord(t, p).NUMAWord
			atomic.StoreInt32(&pair.Node, parking.NoNode)
			b.wait(0, pair.Word(), 0, parking.AllBits, parking.MPOL|private)
			b.wake(pair.Word(), 1, parking.AllBits, private, 1)
			b.woke(0)
			b.done()
		})
	}
}

// The policy of a thread is none of the word's.
func TestMPOL_TheThreadsPolicyDoesNotCount(t *testing.T) {
	_, ids := severalNodes(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := parking.SetThreadPolicy(parking.Preferred, ids[1:2]); err != nil {
		t.Fatal(err)
	}
	defer parking.SetThreadPolicy(parking.DefaultPolicy, nil)
	var tab parking.Table
	pair := mapWord(t, policy{mode: -1}).NUMAWord
	atomic.StoreInt32(&pair.Node, parking.NoNode)
	b := &bench{t, &tab, make(chan int, 1)}
	b.wait(0, pair.Word(), 0, parking.AllBits, parking.MPOL|private)
	if n, err := tab.Wake(pair.Word(), 1, parking.AllBits, parking.MPOL|private); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	b.woke(0)
	b.done()
}

// NUMA chooses the caller's node.
func TestNoNode_TheCallersIsChosen(t *testing.T) {
	m, ids := severalNodes(t)
	for _, id := range ids {
		var tab parking.Table
		pair := &parking.NUMAWord{Node: parking.NoNode}
		onNode(t, m, id, func() {
			if _, err := tab.Wake(pair.Word(), 1, parking.AllBits, parking.NUMA); err != nil {
				t.Error(err)
			}
		})
		if pair.Node != int32(id) {
			t.Errorf("on node %d: %d", id, pair.Node)
		}
	}
}

// Waiters on all nodes, of words on all nodes, and wakers anywhere.
func TestFourNodes_Conservation(t *testing.T) {
	m, ids := severalNodes(t)
	var tab parking.Table
	words := make([]parking.NUMAWord, len(ids))
	for i, id := range ids {
		words[i].Node = int32(id)
	}
	rounds := effort(t, 200)
	var wg sync.WaitGroup
	for _, at := range ids {
		wg.Go(func() {
			onNode(t, m, at, func() {
				for i := range rounds * len(words) {
					if err := tab.Wait(words[i%len(words)].Word(), 0, parking.AllBits, parking.NUMA, parking.Limit{}); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
	woken := 0
	within(t, patience, func() {
		for i := 0; woken < rounds*len(words)*len(ids); i++ {
			onNode(t, m, ids[i%len(ids)], func() {
				for j := range words {
					n, err := tab.Wake(words[j].Word(), 1, parking.AllBits, parking.NUMA)
					if err != nil {
						t.Error(err)
					}
					woken += n
				}
			})
			runtime.Gosched()
		}
		wg.Wait()
	})
	if n := tab.AuditGlobal(t); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// A policy is one of the kernel's, for a mapping.
type policy struct {
	mode  int // -1: leave the mapping alone
	nodes []int
	home  bool // the first of nodes is the home node
}

// mapWord returns a word on a page of its own that has been written under the
// policy.
func mapWord(t *testing.T, p policy) *parking.MappedWord {
	t.Helper()
	w, err := parking.MapWord(p.mode, p.nodes, p.home)
	if err == unix.ENOSYS && p.home {
		t.Skip("this kernel has no home nodes")
	}
	if err != nil {
		t.Fatal(fmt.Errorf("policy %+v: %w", p, err))
	}
	t.Cleanup(w.Unmap)
	return w
}
