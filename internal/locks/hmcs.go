package locks

// hmcsBatch is how often a level passes its parent's lock on.
const hmcsBatch = 64

// HMCS is the hierarchical MCS lock of Chabbi, Fagan and Mellor-Crummey (PPoPP
// 2015): a tree of MCS locks. Whoever heads the queue of a level stands for it
// in the queue of its parent.
type HMCS struct {
	levels  []hmcsLevel
	threads []hmcsThread
}

// hmcsLevel is one lock of the tree, with the node by which it waits at its
// parent.
type hmcsLevel struct {
	tail   atomicUint32 // reference of a node of this level
	_      [line - 4]byte
	node   node
	parent int // index; -1: the root
	ref    uint32
	_      [line - 16]byte
}

type hmcsThread struct {
	node
	level int
	_     [line - 8]byte
}

// Values of granted. Those between are the number of times the lock has been
// passed on at this level.
const (
	hmcsFirst  = 1          // passed for the first time, or taken from the parent
	hmcsParent = ^uint32(0) // the level is yours, its parent is not
)

// NewHMCS returns an unlocked HMCS. Levels with a single child are left out.
func NewHMCS(threads []Place) *HMCS {
	l := &HMCS{threads: make([]hmcsThread, len(threads))}
	root := l.add(-1)
	sockets, leaves := map[int]int{}, map[Place]int{}
	inside := map[int]map[int]bool{} // domains of a socket
	for _, p := range threads {
		if inside[p.Socket] == nil {
			inside[p.Socket] = map[int]bool{}
		}
		inside[p.Socket][p.Domain] = true
	}
	for i, p := range threads {
		parent := root
		if len(inside) > 1 && len(inside[p.Socket]) > 1 {
			parent = l.child(sockets, p.Socket, root)
		}
		if _, ok := leaves[p]; !ok {
			leaves[p] = l.add(parent)
		}
		l.threads[i].level = leaves[p]
	}
	for i := range l.levels {
		l.levels[i].ref = uint32(len(threads)+i) + 1
	}
	return l
}

func (l *HMCS) child(levels map[int]int, key, parent int) int {
	i, ok := levels[key]
	if !ok {
		i = l.add(parent)
		levels[key] = i
	}
	return i
}

func (l *HMCS) add(parent int) int {
	l.levels = append(l.levels, hmcsLevel{parent: parent})
	return len(l.levels) - 1
}

// node returns the node with a reference: first the threads', then the levels'.
func (l *HMCS) node(ref uint32) *node {
	if i := int(ref) - 1; i < len(l.threads) {
		return &l.threads[i].node
	} else {
		return &l.levels[i-len(l.threads)].node
	}
}

// Lock locks l.
func (l *HMCS) Lock(thread int) { l.acquire(l.threads[thread].level, refOf(thread)) }

// Unlock unlocks l.
func (l *HMCS) Unlock(thread int) { l.release(l.threads[thread].level, refOf(thread)) }

// acquire takes the lock of level h, and those above it, for the node me.
func (l *HMCS) acquire(h int, me uint32) {
	level, n := &l.levels[h], l.node(me)
	n.reset()
	if prev := level.tail.Swap(me); prev != 0 {
		storeRelease(&l.node(prev).next, me)
		if await(&n.granted) != hmcsParent {
			return
		}
	}
	storeRelease(&n.granted, hmcsFirst)
	if level.parent >= 0 {
		l.acquire(level.parent, level.ref)
	}
}

// release passes the lock on within level h, or gives it back to the parent.
func (l *HMCS) release(h int, me uint32) {
	level, n := &l.levels[h], l.node(me)
	if level.parent < 0 {
		l.pass(level, n, me, hmcsFirst)
		return
	}
	if passes := n.granted.Load(); passes < hmcsBatch {
		if next := n.next.Load(); next != 0 {
			storeRelease(&l.node(next).granted, passes+1)
			return
		}
	}
	l.release(level.parent, level.ref)
	l.pass(level, n, me, hmcsParent)
}

// pass grants the level to the next in its queue, if there is one.
func (l *HMCS) pass(level *hmcsLevel, n *node, me, grant uint32) {
	if n.next.Load() == 0 && level.tail.CompareAndSwap(me, 0) {
		return
	}
	storeRelease(&l.node(await(&n.next)).granted, grant)
}
