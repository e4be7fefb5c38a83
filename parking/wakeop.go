package parking

import "github.com/hqsync/hqsync/internal/race"

// An Op changes a word and then compares what it was: what WakeOp does with its
// second word.
type Op struct {
	Kind    OpKind
	Arg     uint32 // operand; for a shifted one pass 1<<n
	Compare Comparison
	CmpArg  int32 // the old value, as a signed number, is compared with this
}

// An OpKind is what happens to the word.
type OpKind uint8

const (
	OpSet    OpKind = iota // word = arg
	OpAdd                  // word += arg
	OpOr                   // word |= arg
	OpAndNot               // word &^= arg
	OpXor                  // word ^= arg

	numOpKinds
)

// A Comparison is signed, as in Linux.
type Comparison uint8

const (
	Equal Comparison = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual

	numComparisons
)

// DecodeOp reads an operation in the form of Linux's FUTEX_OP macro: 4 bits of
// kind, of which the highest makes the operand a shift count, 4 bits of
// comparison, and two signed 12-bit numbers. It returns ErrNotSupported for
// others than there are.
func DecodeOp(encoded uint32) (Op, error) {
	arg := int32(encoded<<8) >> 20
	op := Op{
		Kind:    OpKind(encoded >> 28 & 7),
		Arg:     uint32(arg),
		Compare: Comparison(encoded >> 24 & 15),
		CmpArg:  int32(encoded<<20) >> 20,
	}
	if encoded>>31 != 0 {
		op.Arg = 1 << (arg & 31)
	}
	return op, op.check()
}

func (op Op) check() error {
	if op.Kind >= numOpKinds || op.Compare >= numComparisons {
		return ErrNotSupported
	}
	return nil
}

// apply changes *p and reports whether the old value compares.
func (op Op) apply(p *uint32) bool {
	for {
		old := loadWord(p)
		if casWord(p, old, op.result(old)) {
			return op.holds(int32(old))
		}
	}
}

func (op Op) result(old uint32) uint32 {
	switch op.Kind {
	case OpSet:
		return op.Arg
	case OpAdd:
		return old + op.Arg
	case OpOr:
		return old | op.Arg
	case OpAndNot:
		return old &^ op.Arg
	}
	return old ^ op.Arg
}

func (op Op) holds(old int32) bool {
	switch op.Compare {
	case Equal:
		return old == op.CmpArg
	case NotEqual:
		return old != op.CmpArg
	case Less:
		return old < op.CmpArg
	case LessOrEqual:
		return old <= op.CmpArg
	case Greater:
		return old > op.CmpArg
	}
	return old >= op.CmpArg
}

// WakeOp carries out op on the second word, under the locks of both, wakes up to
// n1 goroutines that wait on the first, and if op's comparison holds up to n2
// that wait on the second. It returns how many were woken. Errors are as in Wake,
// and ErrNotSupported for an unknown op; the word is then unchanged. A count of 0
// wakes nobody.
func (t *Table) WakeOp(w1 Word, n1 int, w2 Word, n2 int, op Op, flags Flags) (woken int, err error) {
	if flags&^allFlags != 0 || n1 < 0 || n2 < 0 {
		return 0, ErrInvalid
	}
	if err := op.check(); err != nil {
		return 0, err
	}
	k1, err := t.place(w1, flags)
	if err != nil {
		return 0, err
	}
	k2, err := t.place(w2, flags)
	if err != nil {
		return 0, err
	}
	return t.wakeOp(k1, n1, k2, n2, op, w2.val)
}

//go:norace
func (t *Table) wakeOp(k1 Key, n1 int, k2 Key, n2 int, op Op, word *uint32) (woken int, err error) {
	t.prepare()
	race.Disable()
	h1, h2 := t.root(k1), t.root(k2)
	pin()
	s1, _, s2 := t.lockPair(h1, h2, k1, k2)
	var list1, list2 *waiter
	taken1, taken2 := 0, 0
	if t.closed.Load() != 0 {
		err = ErrClosed
	} else {
		if !op.apply(word) {
			n2 = 0
		}
		list1, taken1 = t.takeUpTo(s1, k1, n1)
		list2, taken2 = t.takeUpTo(s2, k2, n2)
	}
	s1.unparks += uint64(taken1)
	s2.unparks += uint64(taken2)
	s1.lower(taken1)
	s2.lower(taken2)
	releasePair(s1, s2)
	unpin()
	signalAll(list1, 0, false, 1)
	signalAll(list2, 0, false, 1)
	race.Enable()
	return taken1 + taken2, err
}

// takeUpTo takes up to n waiters off key's queue in s, which is locked.
//
//go:norace
func (t *Table) takeUpTo(s spot, key Key, n int) (list *waiter, taken int) {
	at := s.find(key, t.spaceOf(key))
	if *at != nil {
		taken = min(n, int((*at).length))
	}
	return take(at, taken), taken
}
