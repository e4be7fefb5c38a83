//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package hq

// Queue nodes belong to Ps: a goroutine in the queue is pinned, so a P needs one
// node, and spares for those that it abandoned and nobody has unlinked yet.
const (
	nodesPerP = 4
	maxPs     = 1024 // a P beyond it waits without a node

	left = ^uint32(0) // value of next: the node's owner has gone, its successor is the head
)

const (
	free = iota
	waiting
	head
	abandoned
)

// A qnode takes two cache lines, which amd64 fetches as a pair.
type qnode struct {
	next  atomicUint32 // reference of the successor; 0 = none yet. Written by the successor, or left (N6)
	state atomicUint32 // free, waiting, head, abandoned
	_     [120]byte
}

// nodes is untouched, hence not resident, but for those of Ps that have queued.
var nodes [maxPs * nodesPerP]qnode

// node returns the node with reference ref, which is not 0.
//
//go:norace
func node(ref uint32) *qnode { return &nodes[ref-1] }

// claim takes a free node of the calling P (N1) and returns its reference, or 0.
//
//go:norace
func claim() uint32 {
	p := uint32(pin()) // the caller is pinned already: this only tells the number
	unpin()
	if p >= maxPs {
		return 0
	}
	for ref := p*nodesPerP + 1; ref <= (p+1)*nodesPerP; ref++ {
		if n := node(ref); n.state.Load() == free {
			n.next.Store(0)
			n.state.Store(waiting)
			return ref
		}
	}
	return 0
}
