package locks

// node is a waiter in a queue. Its owner spins on granted; whoever comes behind
// it writes next.
type node struct {
	next    atomicUint32 // reference of the waiter behind; 0: not linked yet
	granted atomicUint32 // 0: wait
	_       [line - 8]byte
}

func (n *node) reset() {
	storeRelease(&n.next, 0)
	storeRelease(&n.granted, 0)
}

// MCS is the queue lock of Mellor-Crummey and Scott ("Algorithms for Scalable
// Synchronization on Shared-Memory Multiprocessors", 1991): each waiter spins on
// a node of its own.
type MCS struct {
	tail  atomicUint32
	_     [line - 4]byte
	nodes []node
}

// NewMCS returns an unlocked MCS.
func NewMCS(threads int) *MCS { return &MCS{nodes: make([]node, threads)} }

// Lock locks l.
func (l *MCS) Lock(thread int) {
	n := &l.nodes[thread]
	n.reset()
	if prev := l.tail.Swap(refOf(thread)); prev != 0 {
		storeRelease(&l.nodes[prev-1].next, refOf(thread))
		await(&n.granted)
	}
}

// Unlock unlocks l.
func (l *MCS) Unlock(thread int) {
	n := &l.nodes[thread]
	if n.next.Load() == 0 && l.tail.CompareAndSwap(refOf(thread), 0) {
		return
	}
	storeRelease(&l.nodes[await(&n.next)-1].granted, 1)
}

// CLH is the queue lock of Craig and of Landin and Hagersten (1993, 1994): each
// waiter spins on the node of the one before it, and takes that node over.
type CLH struct {
	tail    atomicUint32 // index of a node
	_       [line - 4]byte
	nodes   []clhNode
	threads []clhThread
}

type clhNode struct {
	busy atomicUint32
	_    [line - 4]byte
}

// clhThread is private to its thread.
type clhThread struct {
	mine, before uint32 // indexes of nodes
	_            [line - 8]byte
}

// NewCLH returns an unlocked CLH.
func NewCLH(threads int) *CLH {
	l := &CLH{nodes: make([]clhNode, threads+1), threads: make([]clhThread, threads)}
	for i := range l.threads {
		l.threads[i].mine = uint32(i) + 1
	}
	return l
}

// Lock locks l.
func (l *CLH) Lock(thread int) {
	t := &l.threads[thread]
	storeRelease(&l.nodes[t.mine].busy, 1)
	t.before = l.tail.Swap(t.mine)
	for l.nodes[t.before].busy.Load() != 0 {
		pause()
	}
}

// Unlock unlocks l.
func (l *CLH) Unlock(thread int) {
	t := &l.threads[thread]
	mine := t.mine
	t.mine = t.before
	storeRelease(&l.nodes[mine].busy, 0)
}
