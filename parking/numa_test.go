package parking_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hqsync/hqsync/parking"
	"github.com/hqsync/hqsync/topology"
)

// B5: the kernel crashed on a node that is negative and not -1. Every edge of
// the node word, in every operation.
func TestB5_NodeWordEdges_AreRefusedUntouched(t *testing.T) {
	tab := parking.NewNUMATable([]int{0, 1, 3}, func() int { return 3 }, nil, nil)
	ok := map[int32]bool{-1: true, 0: true, 1: true, 3: true}
	var edges []int32
	for shift := range 32 {
		for _, d := range []int32{-2, -1, 0, 1, 2} {
			edges = append(edges, int32(1)<<shift+d, -(int32(1)<<shift)+d)
		}
	}
	for _, node := range edges {
		for name, op := range map[string]func(w parking.Word) error{
			"Wait": func(w parking.Word) error {
				return tab.Wait(w, 1, parking.AllBits, parking.NUMA, parking.Limit{})
			},
			"Wake":   func(w parking.Word) error { _, err := tab.Wake(w, 1, parking.AllBits, parking.NUMA); return err },
			"source": func(w parking.Word) error { _, _, err := tab.Requeue(w, other.Word(), 1, 1, parking.NUMA); return err },
			"target": func(w parking.Word) error { _, _, err := tab.Requeue(other.Word(), w, 1, 1, parking.NUMA); return err },
			"WakeOp": func(w parking.Word) error {
				_, err := tab.WakeOp(w, 1, other.Word(), 1, parking.Op{}, parking.NUMA)
				return err
			},
			"WaitV": func(w parking.Word) error {
				_, err := tab.WaitV([]parking.WaitEntry{{Word: w, Val: 1, Flags: parking.NUMA}}, parking.Limit{})
				return err
			},
		} {
			pair := &parking.NUMAWord{Node: node}
			err := op(pair.Word())
			switch {
			case !ok[node]:
				if err != parking.ErrInvalid || pair.Node != node {
					t.Errorf("%s, node %d: %v, node %d afterwards", name, node, err, pair.Node)
				}
			case node == -1:
				if pair.Node != 3 {
					t.Errorf("%s chose node %d, the caller runs on 3", name, pair.Node)
				}
			default:
				if pair.Node != node {
					t.Errorf("%s changed node %d to %d", name, node, pair.Node)
				}
			}
		}
	}
}

var other = &parking.NUMAWord{}

// Wait and wake that agree on flags meet, whatever nodes they run on, since one
// of them alone decides: the node word is written once.
func TestNoNode_ManyChooseAtOnce_AllMeet(t *testing.T) {
	var turn atomic.Int64
	tab := parking.NewNUMATable([]int{0, 1, 2, 3}, func() int { return int(turn.Add(1) % 4) }, nil, nil)
	for range effort(t, 300) {
		pair := &parking.NUMAWord{Node: parking.NoNode}
		const n = 8
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := tab.Wait(pair.Word(), 0, parking.AllBits, parking.NUMA, parking.Limit{}); err != nil {
					t.Error(err)
				}
			})
		}
		within(t, patience, func() {
			for woken := 0; woken < n; {
				node := atomic.LoadInt32(&pair.Node)
				k, err := tab.Wake(pair.Word(), n, parking.AllBits, parking.NUMA)
				if err != nil {
					t.Fatal(err)
				}
				woken += k
				if now := atomic.LoadInt32(&pair.Node); now != node && node != parking.NoNode {
					t.Fatalf("the node changed from %d to %d", node, now)
				}
			}
			wg.Wait()
		})
	}
}

func TestCorruptedNode_FindsNobody_TheWaiterStays(t *testing.T) {
	b := newBench(t, 0, 1)
	pair := &parking.NUMAWord{Node: 0}
	b.wait(0, pair.Word(), 0, parking.AllBits, parking.NUMA)
	atomic.StoreInt32(&pair.Node, 1)
	b.wake(pair.Word(), 1, parking.AllBits, parking.NUMA, 0)
	atomic.StoreInt32(&pair.Node, 7)
	if _, err := b.Wake(pair.Word(), 1, parking.AllBits, parking.NUMA); err != parking.ErrInvalid {
		t.Error(err)
	}
	atomic.StoreInt32(&pair.Node, 0)
	b.wake(pair.Word(), 1, parking.AllBits, parking.NUMA, 1)
	b.woke(0)
}

// The order in which a node is found: the word, the policy, the caller.
func TestMPOL_LookUpOrder(t *testing.T) {
	var policy, asked atomic.Int64
	var subject uintptr
	tab := parking.NewNUMATable([]int{0, 1, 2}, func() int { return 2 }, func(a uintptr) int {
		asked.Add(1)
		if a != subject {
			t.Errorf("asked about %#x", a)
		}
		return int(policy.Load())
	}, nil)
	b := &bench{t, tab, make(chan int, 100)}
	pair := &parking.NUMAWord{Node: parking.NoNode}
	subject = parking.AddrOf(&pair.Val)
	const numa, mpol = parking.NUMA, parking.MPOL

	// Without NUMA the word is never written. A hit goes to the node's global
	// buckets, where NUMA finds it; no hit is as without the flag.
	policy.Store(1)
	b.wait(0, pair.Word(), 0, parking.AllBits, mpol|private)
	b.node(pair, parking.NoNode)
	b.wake(pair.Word(), 1, parking.AllBits, private, 0)
	atomic.StoreInt32(&pair.Node, 1)
	b.wake(pair.Word(), 1, parking.AllBits, numa|private, 1)
	b.woke(0)
	for _, none := range []int{parking.NoNode, 3, 99} { // also a node that the machine cannot have
		policy.Store(int64(none))
		b.wait(1, pair.Word(), 0, parking.AllBits, mpol|private)
		b.wake(pair.Word(), 1, parking.AllBits, private, 1)
		b.woke(1)
	}

	// With NUMA a valid word wins and the policy is not asked.
	policy.Store(1)
	atomic.StoreInt32(&pair.Node, 0)
	asked.Store(0)
	b.wake(pair.Word(), 1, parking.AllBits, numa|mpol, 0)
	b.node(pair, 0)
	if asked.Load() != 0 {
		t.Error("the policy was asked although the word has a node")
	}
	atomic.StoreInt32(&pair.Node, parking.NoNode)
	b.wake(pair.Word(), 1, parking.AllBits, numa|mpol, 0)
	b.node(pair, 1)
	policy.Store(parking.NoNode)
	atomic.StoreInt32(&pair.Node, parking.NoNode)
	b.wake(pair.Word(), 1, parking.AllBits, numa|mpol, 0)
	b.node(pair, 2)

	// A policy that changes in between hides the waiter.
	policy.Store(1)
	b.wait(2, pair.Word(), 0, parking.AllBits, mpol|private)
	policy.Store(0)
	b.wake(pair.Word(), 1, parking.AllBits, mpol|private, 0)
	policy.Store(1)
	b.wake(pair.Word(), 1, parking.AllBits, mpol|private, 1)
	b.woke(2)
	b.done()
}

// Keys of layer 1 carry their node too, stay in the table, and survive resizes.
func TestTaggedKeys_OnFourNodes_SurviveResizes(t *testing.T) {
	tab := parking.NewNUMATable([]int{0, 1, 2, 3}, func() int { return 0 }, nil, nil)
	base := keys(t, 20)
	order := map[parking.Key][]*sleeper{}
	for i, k := range base {
		k.Node = uint32(i % 6) // none, 4 nodes, and one that there is not
		order[k] = sleepers(tab, k, 3)
	}
	for _, n := range someSizes {
		if err := tab.SetSlots(n, 0); err != nil || tab.Slots() != int(n) {
			t.Fatalf("SetSlots(%d): %v, Slots %d", n, err, tab.Slots())
		}
		audit(t, tab, 3*len(order))
		for k, s := range order {
			if i := tab.ArrayOf(k); k.Node >= 1 && k.Node <= 4 && i != int(k.Node)-1 {
				t.Fatalf("key %v is in array %d", k, i)
			}
			if n := tab.Queued(k); n != len(s) {
				t.Fatalf("%d of %d waiters of %v", n, len(s), k)
			}
		}
	}
	if s := tab.Stats(); s.Nodes != 4 || s.Parked != 60 {
		t.Errorf("%+v", s)
	}
	for k, s := range order {
		wakeAllInOrder(t, tab, k, s)
	}
}

// Plain keys spread over all nodes, so that one table serves both kinds.
func TestPlainKeys_SpreadOverTheNodes(t *testing.T) {
	for _, nodes := range [][]int{{0, 1}, {0, 1, 2}, {1, 4, 5, 9, 11, 12, 13, 14}} {
		tab := parking.NewNUMATable(nodes, func() int { return nodes[0] }, nil, nil)
		if err := tab.SetSlots(64, 0); err != nil {
			t.Fatal(err)
		}
		seen := make([]int, len(nodes))
		const n = 4096
		for _, k := range keys(t, n) {
			seen[tab.ArrayOf(k)]++
		}
		for i, c := range seen {
			if c < n/len(nodes)/2 || c > n/len(nodes)*2 {
				t.Errorf("%d of %d keys are on node %d of %d: %v", c, n, i, len(nodes), seen)
			}
		}
	}
}

func TestOneNode_HasNoArraysOfNodes(t *testing.T) {
	var tab parking.Table
	k := keys(t, 1)[0]
	sleepers(&tab, k, 1)
	if topology.Ready().PossibleNUMANodes().Len() == 1 && tab.Stats().Nodes != 1 {
		t.Errorf("%+v", tab.Stats())
	}
	tab.UnparkAll(k, nil)
}

// What the environment says of the default table, in processes of their own.
func TestEnvironment_DefaultTable(t *testing.T) {
	if line := os.Getenv("HQSYNC_PARKING_CHILD"); line != "" {
		describeDefault()
		return
	}
	for _, c := range []struct{ env, want string }{
		{"", "set nil"},
		{"slots=64", "slots 64 immutable false"},
		{"slots=64,immutable=1", "slots 64 immutable true set busy"},
		{"immutable=1", "immutable true set busy"},
		{"slots=0", "slots 0 immutable true set busy"},
		{"topology=4x2,slots=32", "slots 32 immutable false set nil nodes 4"},
	} {
		out, err := childWith(t, []string{"HQSYNC_PARKING_CHILD=1", "SYNC2=" + c.env}, "-test.run=^TestEnvironment_DefaultTable$", "-test.v")
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("SYNC2=%s: %v\n%s\n%q expected", c.env, err, out, c.want)
		}
	}
	place := func() string {
		out, err := childWith(t, []string{"HQSYNC_PARKING_CHILD=1", "SYNC2=hashseed=7"}, "-test.run=^TestEnvironment_DefaultTable$", "-test.v")
		if err != nil {
			t.Fatal(err, out)
		}
		_, rest, _ := strings.Cut(out, "spot ")
		return strings.Fields(rest)[0]
	}
	if a, b := place(), place(); a != b {
		t.Errorf("the same seed put an address into bucket %s and into %s", a, b)
	}
}

func describeDefault() {
	tab := parking.Default()
	k := parking.Key{Addr: 0x12345678}
	tab.Park(k, func() bool { return false }, nil, nil, &parking.Options{})
	s := tab.Stats()
	fmt.Printf("slots %d immutable %v ", tab.Slots(), tab.Immutable())
	switch err := tab.SetSlots(128, 0); err {
	case nil:
		fmt.Print("set nil ")
	case parking.ErrBusy:
		fmt.Print("set busy ")
	default:
		fmt.Print(err)
	}
	fmt.Printf("nodes %d spot %d\n", s.Nodes, tab.Index(k))
}

// Somebody else chooses a node between the look at the word and the choice: his
// stands, and all meet there.
func TestNoNode_AnotherChoosesMeanwhile_HisStands(t *testing.T) {
	pair := &parking.NUMAWord{Node: parking.NoNode}
	tab := parking.NewNUMATable([]int{0, 1, 2}, func() int {
		atomic.CompareAndSwapInt32(&pair.Node, parking.NoNode, 2)
		return 1
	}, nil, nil)
	b := &bench{t, tab, make(chan int, 10)}
	b.wait(0, pair.Word(), 0, parking.AllBits, parking.NUMA)
	b.node(pair, 2)
	b.wake(pair.Word(), 1, parking.AllBits, parking.NUMA, 1)
	b.woke(0)
}
