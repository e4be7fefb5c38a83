package parking

import (
	"context"
	"runtime"
	"time"

	"github.com/hqsync/hqsync/internal/race"
)

// A Word is what futex operations wait on: 32 bits that the program changes with
// package sync/atomic. It is made by [WordOf] or [NUMAWord.Word].
type Word struct {
	val  *uint32
	pair *NUMAWord // nil if the word has no node beside it
}

// WordOf returns *p as a Word.
func WordOf(p *uint32) Word { return Word{val: p} }

// A NUMAWord is a word with the NUMA node beside it whose buckets its waiters are
// in, FUTEX2_NUMA's pair. It is aligned to 8 bytes, as that wants.
//
// Node is the id of a node, or NoNode: then the first operation with the flag
// NUMA chooses one and stores it. Whoever changes it while goroutines wait hides
// them from those who wake: they look on another node and find nobody. Both
// fields are accessed with package sync/atomic once the word is in use. The zero
// value has node 0.
type NUMAWord struct {
	_    align8
	Val  uint32
	Node int32
}

// NoNode says that no NUMA node has been chosen.
const NoNode = -1

// Word returns w as a Word.
func (w *NUMAWord) Word() Word {
	if w == nil {
		return Word{}
	}
	return Word{&w.Val, w}
}

// Flags say where a futex operation looks for waiters. Operations meet if they
// are on one word, with the same flags Private and NUMA, and find the same node.
type Flags uint32

const (
	// NUMA takes the node from the word's pair. Its waiters are in the buckets of
	// that node which all tables share.
	NUMA Flags = 0x04
	// MPOL asks for the memory policy of the word's address. If it prefers a node
	// the waiters are in that node's buckets, as with NUMA, else where they are
	// without the flag. With NUMA the pair's node goes first, then the policy, then
	// the caller's node. A policy that changes in between hides waiters.
	//
	// Only MPOL_PREFERRED prefers a node here. Linux also goes by the home node of
	// MPOL_BIND and MPOL_PREFERRED_MANY, but has no call that tells it: a program
	// that sets one can store it in the pair of a NUMAWord. The policy of a thread
	// does not count, in neither.
	MPOL Flags = 0x08
	// Private keeps to this Table. Without it the operation is one of all tables,
	// in the buckets that they share.
	Private Flags = 0x80

	allFlags = NUMA | MPOL | Private
)

// AllBits is the mask that meets every other.
const AllBits = ^uint32(0)

// MaxWaitV is the largest number of words that WaitV takes.
const MaxWaitV = 128

// A Limit ends a wait. The zero value does not.
type Limit struct {
	Deadline time.Time       // zero = none; without a monotonic reading it is converted when the wait begins
	Context  context.Context // nil = none
	invalid  bool
}

// Within is a limit of a time from now. A negative one is invalid.
func Within(d time.Duration) Limit { return Limit{Deadline: now().Add(d), invalid: d < 0} }

// place checks word and flags and returns the key that stands for them. With
// NUMA it may store the node.
//
//go:norace
func (t *Table) place(w Word, flags Flags) (Key, error) {
	switch addr := AddrOf(w.val); {
	case w.val == nil:
		return Key{}, ErrFault
	case addr%4 != 0, flags&NUMA != 0 && (w.pair == nil || addr%8 != 0):
		return Key{}, ErrInvalid
	}
	key := Key{Addr: AddrOf(w.val)}
	if flags&Private == 0 {
		key.Node = inGlobal | shared
	}
	if flags&(NUMA|MPOL) == 0 {
		return key, nil
	}
	node, err := t.home().machine().choose(w, flags)
	if node != NoNode {
		key.Node |= inGlobal | uint32(node+1)
	}
	return key, err
}

// choose returns the node that a word's waiters are on, or NoNode.
//
//go:norace
func (m *machine) choose(w Word, flags Flags) (node int, err error) {
	node = NoNode
	if flags&NUMA != 0 {
		node = int(loadNode(&w.pair.Node))
		if node != NoNode {
			return m.check(node)
		}
	}
	if flags&MPOL != 0 {
		if node = m.asks(AddrOf(w.val)); !m.possible(node) {
			node = NoNode
		}
	}
	if flags&NUMA == 0 {
		return node, nil
	}
	if node == NoNode {
		node = m.here()
	}
	if casNode(&w.pair.Node, NoNode, int32(node)) {
		return node, nil
	}
	return m.check(int(loadNode(&w.pair.Node))) // somebody else chose: all must meet there
}

//go:norace
func (m *machine) check(node int) (int, error) {
	if !m.possible(node) {
		return NoNode, ErrInvalid
	}
	return node, nil
}

// Wait sleeps until a wake-up with an overlapping mask, if the word still is
// val. It returns
//
//	nil            it was chosen by Wake, Requeue, CmpRequeue or WakeOp, once
//	ErrAgain       the word was not val
//	ErrTimedOut    the deadline passed, before it was chosen and, if it had passed before the call, with the word being val
//	ErrCanceled    the same for the context, with the deadline not passed
//	ErrInvalid     unknown flag; mask 0; bad limit; misaligned word; NUMA without a NUMAWord, or with a node that the machine cannot have
//	ErrFault       nil word
//	ErrClosed      the table is or was closed
//
// and never returns nil for another reason. The word is compared under the lock
// of the bucket that wakers need, after the waiter has been counted: whoever
// stores another value, with a sequentially consistent operation, and then wakes,
// finds the waiter or has been seen by it.
//
// The operation that wakes synchronizes before the return of Wait. Wait does not
// allocate in the steady state unless limit has yet to come.
func (t *Table) Wait(w Word, val, mask uint32, flags Flags, limit Limit) error {
	if flags&^allFlags != 0 || mask == 0 || limit.invalid {
		return ErrInvalid
	}
	key, err := t.place(w, flags)
	if err != nil {
		return err
	}
	if t.differs(key, w.val, val) {
		return ErrAgain
	}
	unchanged := func() bool { return loadWord(w.val) == val }
	r := t.Park(key, unchanged, nil, nil, &Options{
		Token: ParkToken(mask), Deadline: limit.Deadline, Context: limit.Context, Skip: 1, RaceEdge: true,
	})
	runtime.KeepAlive(w.val)
	return waitErrors[r.Outcome]
}

// differs reports whether a wait for val is refused. Park decides that in any case;
// but refusals are so frequent that they are not to pay for what only a sleeper
// needs: a place in the count, a record. The look is taken with the bucket locked,
// as Park's is, so a refused wait and a wake of the same word never overlap.
//
//go:norace
func (t *Table) differs(key Key, word *uint32, val uint32) bool {
	t.prepare()
	race.Disable()
	h := t.root(key)
	pin()
	s, _ := t.lock(h, key)
	refused := loadWord(word) != val && t.closed.Load() == 0
	s.release()
	unpin()
	race.Enable()
	return refused
}

var waitErrors = [...]error{
	Unparked: nil,
	Invalid:  ErrAgain,
	TimedOut: ErrTimedOut,
	Canceled: ErrCanceled,
	Closed:   ErrClosed,
}

// Wake wakes up to n goroutines that wait on the word with a mask that overlaps,
// oldest first, and returns their number. With n = 0 it only checks its
// arguments, and not the node. It does not read the word, but with NUMA the node
// beside it. Errors are ErrInvalid, also for n < 0, ErrFault and ErrClosed as in
// Wait.
//
// Where nobody waits it costs one load and no lock.
func (t *Table) Wake(w Word, n int, mask uint32, flags Flags) (woken int, err error) {
	if flags&^allFlags != 0 || mask == 0 || n < 0 {
		return 0, ErrInvalid
	}
	if n == 0 {
		flags &^= NUMA | MPOL
	}
	key, err := t.place(w, flags)
	switch {
	case err != nil:
		return 0, err
	case t.closed.Load() != 0:
		return 0, ErrClosed
	case n == 0 || !t.Waiting(key):
		return 0, nil
	}
	chosen := 0
	r := t.UnparkFilter(key, func(p ParkToken) FilterOp {
		switch {
		case chosen == n:
			return Stop
		case uint32(p)&mask == 0:
			return Skip
		}
		chosen++
		return Unpark
	}, nil)
	return r.Unparked, nil
}

// Requeue wakes up to wake goroutines that wait on from, oldest first, whatever
// their mask, and makes up to move others wait on to instead, behind those that
// wait there already and in their order. It returns the two numbers. On one word
// nothing moves, and moved says how many would have. Errors are as in Wake. With
// NUMA the nodes of both words are chosen before anything else is done.
//
// The wait keeps from's word alive, not to's: as long as somebody may wait there
// the caller must.
func (t *Table) Requeue(from, to Word, wake, move int, flags Flags) (woken, moved int, err error) {
	return t.requeueIf(nil, 0, from, to, wake, move, flags)
}

// CmpRequeue is Requeue that returns ErrAgain if from is not val, which is
// compared under the locks of both words.
func (t *Table) CmpRequeue(from, to Word, val uint32, wake, move int, flags Flags) (woken, moved int, err error) {
	return t.requeueIf(from.val, val, from, to, wake, move, flags)
}

func (t *Table) requeueIf(cmp *uint32, val uint32, from, to Word, wake, move int, flags Flags) (woken, moved int, err error) {
	if flags&^allFlags != 0 || wake < 0 || move < 0 {
		return 0, 0, ErrInvalid
	}
	kFrom, err := t.place(from, flags)
	if err != nil {
		return 0, 0, err
	}
	kTo, err := t.place(to, flags)
	if err != nil {
		return 0, 0, err
	}
	err = ErrClosed // unless decide runs
	waiting := 0
	r := t.requeue(kFrom, kTo, func(n int) (int, int) {
		if cmp != nil && loadWord(cmp) != val {
			err = ErrAgain
			return 0, 0
		}
		err = nil
		waiting = n
		return wake, move
	}, nil)
	moved = r.Requeued
	if kFrom == kTo {
		moved = min(move, waiting-r.Unparked)
	}
	return r.Unparked, moved, err
}
