package parking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hqsync/hqsync/parking"
)

// A bench is a table with waiters of which it knows the order.
type bench struct {
	*testing.T
	*parking.Table
	awake chan int // numbers of waiters that have returned nil
}

func newBench(t *testing.T, nodes ...int) *bench {
	if nodes == nil {
		nodes = []int{0}
	}
	return &bench{t, parking.NewNUMATable(nodes, func() int { return nodes[0] }, nil, nil), make(chan int, 1000)}
}

const private = parking.Private

// wait starts a waiter and returns when it is queued.
func (b *bench) wait(number int, w parking.Word, val, mask uint32, flags parking.Flags) {
	b.Helper()
	n := b.waiting()
	go func() {
		if err := b.Wait(w, val, mask, flags, parking.Limit{}); err != nil {
			b.Errorf("waiter %d: %v", number, err)
		}
		b.awake <- number
	}()
	eventually(b, "the waiter is queued", func() bool { return b.waiting() == n+1 })
}

func (b *bench) waiting() (n int) {
	b.Waiters(func(parking.WaiterInfo) bool { n++; return true })
	return n
}

// waitMany starts waiters 0..n-1 on a plain private word of value 0.
func (b *bench) waitMany(n int, w parking.Word) {
	for i := range n {
		b.wait(i, w, 0, parking.AllBits, private)
	}
}

// woke checks which waiters have returned since the last call, in any order.
func (b *bench) woke(want ...int) {
	b.Helper()
	var got []int
	for range want {
		select {
		case n := <-b.awake:
			got = append(got, n)
		case <-time.After(patience):
			b.Fatalf("only %v woke, %v expected", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Fatalf("%v woke, %v expected", got, want)
	}
}

// is checks an error and what it says to errors.Is.
func (b *bench) is(what string, err, want error, errno syscall.Errno) {
	b.Helper()
	if err != want || errno != 0 && !errors.Is(err, errno) {
		b.Errorf("%s: %v, %v expected", what, err, want)
	}
}

func (b *bench) wake(w parking.Word, n int, mask uint32, flags parking.Flags, want int) {
	b.Helper()
	if got, err := b.Wake(w, n, mask, flags); err != nil || got != want {
		b.Errorf("wake %d: %d, %v; %d expected", n, got, err, want)
	}
}

func (b *bench) done() {
	b.Helper()
	eventually(b, "nobody waits", func() bool { return b.waiting() == 0 })
	audit(b, b.Table, 0)
}

// misaligned returns a word at an address that no Go word has.
func misaligned(buf *[4]uint64, offset uintptr) parking.Word {
	return parking.WordOf((*uint32)(unsafe.Add(unsafe.Pointer(buf), offset)))
}

// TestLinuxTable has what Linux 6.18 answered to each call. Rows that do not
// apply to a table inside one process are left out: unmapped and read-only
// memory, signals, sizes other than 32 bits, FUTEX_FD, priority inheritance.
func TestLinuxTable(t *testing.T) {
	const any = parking.AllBits
	none := parking.Limit{}
	past := parking.Limit{Deadline: time.Now().Add(-time.Second)}
	all := parking.NUMA | parking.MPOL | private
	rows := []struct {
		name      string
		deviation string // why the outcome is not Linux's
		check     func(b *bench, p, q *uint32, pair *parking.NUMAWord)
	}{
		{"wait, private, value differs", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 1, any, private, none), parking.ErrAgain, syscall.EAGAIN)
		}},
		{"wait, shared, value differs", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 1, any, 0, none), parking.ErrAgain, syscall.EAGAIN)
		}},
		{"wait, equal, +30 ms, monotonic", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			begin := time.Now()
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Within(30*time.Millisecond)), parking.ErrTimedOut, syscall.ETIMEDOUT)
			if d := time.Since(begin); d < 30*time.Millisecond {
				b.Errorf("after %v", d)
			}
		}},
		{"wait, equal, +30 ms, wall clock", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			l := parking.Limit{Deadline: time.Now().Add(30 * time.Millisecond).Round(0)}
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, l), parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"wait, deadline a second ago, equal", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, past), parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"wait, deadline a second ago, value differs", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 1, any, private, past), parking.ErrAgain, syscall.EAGAIN)
		}},
		{"wait, zero absolute time, equal", "the zero time.Time means no deadline; the epoch stands for timespec 0", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Limit{Deadline: time.Unix(0, 0)}), parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"wait, relative 0, equal", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Within(0)), parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"wait, relative 20 ms, equal", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Within(20*time.Millisecond)), parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"wait, negative relative time", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Within(-1)), parking.ErrInvalid, syscall.EINVAL)
			b.is("wait, value differs", b.Wait(parking.WordOf(p), 1, any, private, parking.Within(-1)), parking.ErrInvalid, syscall.EINVAL)
		}},
		{"wait, mask 0", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(p), 0, 0, private, none), parking.ErrInvalid, syscall.EINVAL)
		}},
		{"wait, address 0", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("wait", b.Wait(parking.WordOf(nil), 0, any, private, none), parking.ErrFault, syscall.EFAULT)
			b.is("wait", b.Wait(parking.Word{}, 0, any, all, none), parking.ErrFault, syscall.EFAULT)
			b.is("wait", b.Wait((*parking.NUMAWord)(nil).Word(), 0, any, parking.NUMA, none), parking.ErrFault, syscall.EFAULT)
		}},
		{"wait, unknown flags", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for _, f := range []parking.Flags{0x01, 0x02, 0x10, 0x20, 0x40, 0x100, 1 << 31} {
				b.is(fmt.Sprint("wait, flag ", f), b.Wait(parking.WordOf(p), 1, any, f, none), parking.ErrInvalid, syscall.EINVAL)
			}
		}},
		{"wait, at +1,2,3,5,6,7 and +4", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			var buf [4]uint64
			for o := range uintptr(8) {
				want, errno := parking.ErrInvalid, syscall.EINVAL
				if o%4 == 0 {
					want, errno = parking.ErrAgain, syscall.EAGAIN
				}
				b.is(fmt.Sprint("wait at ", o), b.Wait(misaligned(&buf, o), 1, any, private, none), want, errno)
			}
		}},
		{"wait, NUMA, at +1..+7", "a NUMAWord cannot be misaligned; a plain word has no node beside it", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			var buf [4]uint64
			for o := range uintptr(8) {
				b.is(fmt.Sprint("wait at ", o), b.Wait(misaligned(&buf, o), 1, any, parking.NUMA, none), parking.ErrInvalid, syscall.EINVAL)
			}
			if uintptr(unsafe.Pointer(pair))%8 != 0 || unsafe.Alignof(*pair) != 8 || unsafe.Sizeof(*pair) != 8 {
				b.Errorf("a NUMAWord at %p, aligned to %d, of %d bytes", pair, unsafe.Alignof(*pair), unsafe.Sizeof(*pair))
			}
		}},
		{"wait, NUMA, MPOL, both, value differs", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			for _, f := range []parking.Flags{0, parking.NUMA, parking.MPOL, parking.NUMA | parking.MPOL, all} {
				b.is(fmt.Sprint("wait, flags ", f), b.Wait(pair.Word(), 1, any, f, none), parking.ErrAgain, syscall.EAGAIN)
			}
		}},
		{"wake, nobody", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for _, n := range []int{0, 1, 1<<31 - 1} {
				b.wake(parking.WordOf(p), n, any, private, 0)
				b.wake(parking.WordOf(p), n, any, 0, 0)
			}
		}},
		{"wake, -1", "Linux 6.18 wakes one; later kernels refuse, as here", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.Wake(parking.WordOf(p), -1, any, private)
			b.is("wake", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"wake, mask 0", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.Wake(parking.WordOf(p), 1, 0, private)
			b.is("wake", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"wake, address 0, private", "Linux returns 0: it does not look at a private address. A nil word is a mistake here", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.Wake(parking.WordOf(nil), 1, any, private)
			b.is("wake", err, parking.ErrFault, syscall.EFAULT)
		}},
		{"wake, address 0, shared", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.Wake(parking.WordOf(nil), 1, any, 0)
			b.is("wake", err, parking.ErrFault, syscall.EFAULT)
		}},
		{"wake, unknown flags, misaligned", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.Wake(parking.WordOf(p), 1, any, 0x10)
			b.is("wake", err, parking.ErrInvalid, syscall.EINVAL)
			_, err = b.Wake(misaligned(new([4]uint64), 2), 1, any, private)
			b.is("wake", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"NUMA, node -1: wait, value differs", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.is("wait", b.Wait(pair.Word(), 1, any, parking.NUMA, none), parking.ErrAgain, syscall.EAGAIN)
			b.node(pair, 0)
		}},
		{"NUMA, node -1: wake", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.wake(pair.Word(), 1, any, parking.NUMA, 0)
			b.node(pair, 0)
		}},
		{"NUMA, node -1: wake 0", "Linux 6.18 stores the node; later kernels return first, as here", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.wake(pair.Word(), 0, any, parking.NUMA, 0)
			b.node(pair, -1)
		}},
		{"NUMA, node 0", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			pair.Node = 0
			b.is("wait", b.Wait(pair.Word(), 1, any, parking.NUMA, none), parking.ErrAgain, syscall.EAGAIN)
			b.wake(pair.Word(), 1, any, parking.NUMA, 0)
			b.node(pair, 0)
		}},
		{"NUMA, nodes that there are not", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			for _, node := range []int32{1, 2, 63, 99, 1023, 1024, 65536, -2, -1 << 31, 1<<31 - 1, -1<<15 + 1} {
				for _, f := range []parking.Flags{parking.NUMA, all} {
					pair.Node = node
					b.is(fmt.Sprint("wait, node ", node), b.Wait(pair.Word(), 0, any, f, none), parking.ErrInvalid, syscall.EINVAL)
					_, err := b.Wake(pair.Word(), 1, any, f)
					b.is(fmt.Sprint("wake, node ", node), err, parking.ErrInvalid, syscall.EINVAL)
					b.node(pair, node)
				}
			}
		}},
		{"NUMA and MPOL, node -1, no policy", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.is("wait", b.Wait(pair.Word(), 1, any, parking.NUMA|parking.MPOL, none), parking.ErrAgain, syscall.EAGAIN)
			b.node(pair, 0)
		}},
		{"NUMA, node -1, wait then wake", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.wait(0, pair.Word(), 0, any, parking.NUMA)
			b.node(pair, 0)
			b.wake(pair.Word(), 10, any, parking.NUMA, 1)
			b.woke(0)
		}},
		{"6 waiters: wake 0, 1, INT_MAX", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(6, parking.WordOf(p))
			b.wake(parking.WordOf(p), 0, any, private, 0)
			b.wake(parking.WordOf(p), 1, any, private, 1)
			b.woke(0)
			b.wake(parking.WordOf(p), 1<<31-1, any, private, 5)
			b.woke(1, 2, 3, 4, 5)
		}},
		{"wake 1 x 8: in order", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(8, parking.WordOf(p))
			for i := range 8 {
				b.wake(parking.WordOf(p), 1, any, private, 1)
				b.woke(i)
			}
		}},
		{"wake 1 x 8 across SET_SLOTS 64, 2, 1024: in order", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(8, parking.WordOf(p))
			for i := range 8 {
				if err := b.SetSlots([]uint64{64, 2, 1024}[i%3], 0); err != nil {
					b.Error(err)
				}
				b.wake(parking.WordOf(p), 1, any, private, 1)
				b.woke(i)
			}
		}},
		{"4 waiters, SET_SLOTS 0, wake 10", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(4, parking.WordOf(p))
			b.is("set 0", b.SetSlots(0, 0), nil, 0)
			b.wake(parking.WordOf(p), 1, any, private, 1)
			b.woke(0)
			b.wake(parking.WordOf(p), 10, any, private, 3)
			b.woke(1, 2, 3)
		}},
		{"masks 1, 2, 4, all: order 3, 1, 2, 0", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for i, mask := range []uint32{1, 2, 4, any} {
				b.wait(i, parking.WordOf(p), 0, mask, private)
			}
			for _, step := range []struct {
				mask     uint32
				n, woken int
			}{{8, 10, 3}, {6, 1, 1}, {6, 10, 2}, {any, 10, 0}} {
				b.wake(parking.WordOf(p), step.n, step.mask, private, 1)
				b.woke(step.woken)
			}
		}},
		{"wake that no mask meets", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wait(0, parking.WordOf(p), 0, 1, private)
			b.wake(parking.WordOf(p), 10, 6, private, 0)
			b.wake(parking.WordOf(p), 10, 1, private, 1)
			b.woke(0)
		}},
		{"requeue: wake 1, move 3 of 10; wake target", "the numbers come apart; Linux returns their sum", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(10, parking.WordOf(p))
			b.requeue(p, q, 1, 3, 1, 3)
			b.woke(0)
			for i := range 3 {
				b.wake(parking.WordOf(q), 1, any, private, 1)
				b.woke(1 + i)
			}
			b.wake(parking.WordOf(p), 10, any, private, 6)
			b.woke(4, 5, 6, 7, 8, 9)
		}},
		{"requeue: wake 3, move 7 of 10; wake target", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(10, parking.WordOf(p))
			b.requeue(p, q, 3, 7, 3, 7)
			b.woke(0, 1, 2)
			b.wake(parking.WordOf(q), 1<<31-1, any, private, 7)
			b.woke(3, 4, 5, 6, 7, 8, 9)
		}},
		{"compare and requeue, value differs", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(2, parking.WordOf(p))
			_, _, err := b.CmpRequeue(parking.WordOf(p), parking.WordOf(q), 1, 1, 1, private)
			b.is("requeue", err, parking.ErrAgain, syscall.EAGAIN)
			b.wake(parking.WordOf(p), 10, any, private, 2)
			b.woke(0, 1)
		}},
		{"requeue 0/0", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(2, parking.WordOf(p))
			b.requeue(p, q, 0, 0, 0, 0)
			b.wake(parking.WordOf(p), 10, any, private, 2)
			b.woke(0, 1)
		}},
		{"requeue, wake -1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, _, err := b.Requeue(parking.WordOf(p), parking.WordOf(q), -1, 1, private)
			b.is("requeue", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"requeue, move -1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, _, err := b.CmpRequeue(parking.WordOf(p), parking.WordOf(q), 0, 1, -1, private)
			b.is("requeue", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"requeue, unknown flags", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, _, err := b.CmpRequeue(parking.WordOf(p), parking.WordOf(q), 0, 1, 1, private|1)
			b.is("requeue", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"requeue, source or target nil", "Linux accepts an unmapped private target", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, _, err := b.CmpRequeue(parking.WordOf(nil), parking.WordOf(q), 0, 1, 1, private)
			b.is("source", err, parking.ErrFault, syscall.EFAULT)
			_, _, err = b.CmpRequeue(parking.WordOf(p), parking.WordOf(nil), 0, 1, 1, private)
			b.is("target", err, parking.ErrFault, syscall.EFAULT)
		}},
		{"requeue, target misaligned", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, _, err := b.CmpRequeue(parking.WordOf(p), misaligned(new([4]uint64), 2), 0, 1, 1, private)
			b.is("requeue", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"requeue onto itself, move 2 of 6", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(6, parking.WordOf(p))
			b.requeue(p, p, 0, 2, 0, 2)
			b.requeue(p, p, 0, 100, 0, 6)
			for i := range 6 {
				b.wake(parking.WordOf(p), 1, any, private, 1)
				b.woke(i)
			}
		}},
		{"requeue INT_MAX/INT_MAX", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(4, parking.WordOf(p))
			b.requeue(p, q, 1<<31-1, 1<<31-1, 4, 0)
			b.woke(0, 1, 2, 3)
		}},
		{"REQUEUE 1,2; CMP_REQUEUE 1,1; mismatch", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(6, parking.WordOf(p))
			if w, m, err := b.Requeue(parking.WordOf(p), parking.WordOf(q), 1, 2, private); w+m != 3 || err != nil {
				b.Error(w, m, err)
			}
			if w, m, err := b.CmpRequeue(parking.WordOf(p), parking.WordOf(q), 0, 1, 1, private); w+m != 2 || err != nil {
				b.Error(w, m, err)
			}
			if _, _, err := b.CmpRequeue(parking.WordOf(p), parking.WordOf(q), 7, 1, 1, private); err != parking.ErrAgain {
				b.Error(err)
			}
			b.woke(0, 3)
			b.wake(parking.WordOf(q), 9, any, private, 3)
			b.wake(parking.WordOf(p), 9, any, private, 1)
			b.woke(1, 2, 4, 5)
		}},
		{"requeue 0,1,2 behind 3,4,5", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) { b.behind(p, q) }},
		{"requeue 0,1,2 behind 3,4,5 in one bucket", "Linux leaves the bucket's order; here they are behind", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.Table = parking.BadTable()
			b.behind(p, q)
		}},
		{"requeue: woken masks do not matter", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wait(0, parking.WordOf(p), 0, 1, private)
			b.wait(1, parking.WordOf(p), 0, 2, private)
			b.requeue(p, q, 1, 1, 1, 1)
			b.woke(0)
			b.wake(parking.WordOf(q), 1, 1, private, 0)
			b.wake(parking.WordOf(q), 1, 2, private, 1)
			b.woke(1)
		}},
		{"requeue NUMA to NUMA, target node -1", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			to := &parking.NUMAWord{Node: -1}
			b.wait(0, pair.Word(), 0, any, parking.NUMA)
			w, m, err := b.CmpRequeue(pair.Word(), to.Word(), 0, 0, 1, parking.NUMA)
			if w != 0 || m != 1 || err != nil {
				b.Error(w, m, err)
			}
			b.node(to, 0)
			b.wake(to.Word(), 1, any, parking.NUMA, 1)
			b.woke(0)
		}},
		{"requeue NUMA, value differs: both nodes stored", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			to := &parking.NUMAWord{Node: -1}
			_, _, err := b.CmpRequeue(pair.Word(), to.Word(), 5, 1, 1, parking.NUMA)
			b.is("requeue", err, parking.ErrAgain, syscall.EAGAIN)
			b.node(pair, 0)
			b.node(to, 0)
		}},
		{"requeue NUMA, target node 99: source stored", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			to := &parking.NUMAWord{Node: 99}
			_, _, err := b.CmpRequeue(pair.Word(), to.Word(), 0, 1, 1, parking.NUMA)
			b.is("requeue", err, parking.ErrInvalid, syscall.EINVAL)
			b.node(pair, 0)
			b.node(to, 99)
		}},
		{"waitv of 0 and 129", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for _, n := range []int{0, 129} {
				_, err := b.WaitV(make([]parking.WaitEntry, n), none)
				b.is(fmt.Sprint("waitv of ", n), err, parking.ErrInvalid, syscall.EINVAL)
			}
			_, err := b.WaitV(nil, none)
			b.is("waitv of nil", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"waitv, unknown flag, misaligned", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			e := entries(p, q)
			e[1].Flags = 0x10
			i, err := b.WaitV(e, none)
			b.is("waitv", err, parking.ErrInvalid, syscall.EINVAL)
			if i != 1 {
				b.Errorf("the error is about entry %d", i)
			}
			e = entries(p, q)
			e[1].Word = misaligned(new([4]uint64), 1)
			_, err = b.WaitV(e, none)
			b.is("waitv", err, parking.ErrInvalid, syscall.EINVAL)
		}},
		{"waitv, nil entry", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.WaitV([]parking.WaitEntry{{Word: parking.WordOf(p), Flags: private}, {Flags: private}}, none)
			b.is("waitv", err, parking.ErrFault, syscall.EFAULT)
		}},
		{"waitv, entry 5 differs", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			e := entries(make128()...)
			e[5].Val = 1
			i, err := b.WaitV(e, past)
			b.is("waitv", err, parking.ErrAgain, syscall.EAGAIN)
			if i != 5 {
				b.Errorf("the error is about entry %d", i)
			}
		}},
		{"waitv, past deadline", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.WaitV(entries(p, q), past)
			b.is("waitv", err, parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"waitv, 128 entries, +20 ms", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.WaitV(entries(make128()...), parking.Within(20*time.Millisecond))
			b.is("waitv", err, parking.ErrTimedOut, syscall.ETIMEDOUT)
		}},
		{"waitv, 30 entries, wake the last", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			words := make128()[:30]
			got := b.waitV(entries(words...))
			b.wake(parking.WordOf(words[29]), 1, any, private, 1)
			b.index(got, 29)
		}},
		{"waitv, wake entry 6", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			words := make128()[:10]
			got := b.waitV(entries(words...))
			b.wake(parking.WordOf(words[6]), 1, any, private, 1)
			b.index(got, 6)
		}},
		{"waitv, entry 2 requeued, then woken", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			words := make128()[:4]
			got := b.waitV(entries(words...))
			b.requeue(words[2], q, 0, 1, 0, 1)
			b.wake(parking.WordOf(q), 1, any, private, 1)
			b.index(got, 2)
		}},
		{"waitv, one word twice: wake 1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			got := b.waitV(entries(p, p))
			b.wake(parking.WordOf(p), 1, any, private, 1)
			b.index(got, 0)
		}},
		{"waitv, one word twice: wake 10", "the lowest index is returned, Linux has the last", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			got := b.waitV(entries(p, p))
			b.wake(parking.WordOf(p), 10, any, private, 2)
			b.index(got, 0)
		}},
		{"waitv, NUMA -1, wake", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			got := b.waitV([]parking.WaitEntry{{Word: pair.Word(), Flags: parking.NUMA}, {Word: parking.WordOf(p), Flags: private}})
			b.node(pair, 0)
			b.wake(pair.Word(), 1, any, parking.NUMA, 1)
			b.index(got, 0)
		}},
		{"waitv, entry 0 differs: nodes of all stored", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			pairs := []*parking.NUMAWord{{Node: -1}, {Node: -1}, {Node: -1}}
			e := pairEntries(pairs)
			e[0].Val = 3
			_, err := b.WaitV(e, none)
			b.is("waitv", err, parking.ErrAgain, syscall.EAGAIN)
			for _, pair := range pairs {
				b.node(pair, 0)
			}
		}},
		{"waitv, entry 1 has node 99: nodes before it stored", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			pairs := []*parking.NUMAWord{{Node: -1}, {Node: 99}, {Node: -1}}
			_, err := b.WaitV(pairEntries(pairs), none)
			b.is("waitv", err, parking.ErrInvalid, syscall.EINVAL)
			b.node(pairs[0], 0)
			b.node(pairs[1], 99)
			b.node(pairs[2], -1)
		}},
		{"waitv, MPOL, value differs", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			_, err := b.WaitV([]parking.WaitEntry{{Word: parking.WordOf(p), Val: 1, Flags: parking.MPOL}}, none)
			b.is("waitv", err, parking.ErrAgain, syscall.EAGAIN)
		}},
		{"WAKE_OP set, old value matches, 1+1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wakeOp(p, q, 2, parking.Op{Kind: parking.OpSet, Arg: 7}, 1, 1, 2)
			if *q != 7 {
				b.Errorf("the word is %d", *q)
			}
		}},
		{"WAKE_OP add, old value differs, 1+1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wakeOp(p, q, 2, parking.Op{Kind: parking.OpAdd, Arg: 3, CmpArg: 1}, 1, 1, 1)
			if *q != 3 {
				b.Errorf("the word is %d", *q)
			}
		}},
		{"WAKE_OP or, greater, 0+0", "Linux takes a count of 0 for 1", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wakeOp(p, q, 2, parking.Op{Kind: parking.OpOr, Arg: 4, Compare: parking.Greater, CmpArg: -1}, 0, 0, 0)
			if *q != 4 {
				b.Errorf("the word is %d", *q)
			}
		}},
		{"WAKE_OP unknown operation", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.WakeOp(parking.WordOf(p), 1, parking.WordOf(q), 1, parking.Op{Kind: 5}, private)
			b.is("wake", err, parking.ErrNotSupported, syscall.ENOSYS)
			if *q != 0 {
				b.Error("the word has changed")
			}
		}},
		{"WAKE_OP unknown comparison", "Linux stores before it notices", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			_, err := b.WakeOp(parking.WordOf(p), 1, parking.WordOf(q), 1, parking.Op{Arg: 9, Compare: 6}, private)
			b.is("wake", err, parking.ErrNotSupported, syscall.ENOSYS)
			if *q != 0 {
				b.Error("the word has changed")
			}
		}},
		{"WAKE_OP shift form, signed less", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			op, err := parking.DecodeOp(9<<28 | 2<<24 | 5<<12 | 0xfff) // add 1<<5, less than -1
			if want := (parking.Op{Kind: parking.OpAdd, Arg: 32, Compare: parking.Less, CmpArg: -1}); err != nil || op != want {
				b.Errorf("%+v, %v", op, err)
			}
			old := int32(-2)
			*q = uint32(old)
			if n, err := b.WakeOp(parking.WordOf(p), 1, parking.WordOf(q), 1, op, private); n != 0 || err != nil {
				b.Error(n, err)
			}
			if *q != 30 {
				b.Errorf("the word is %d", *q)
			}
		}},
		{"GET_SLOTS, fresh and after use", "goroutines are not counted: a table has its slots from the first that parks", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			if b.Slots() != 0 {
				b.Error("a fresh table has slots")
			}
			b.waitMany(1, parking.WordOf(p))
			if b.Slots() < 16 {
				b.Errorf("%d slots", b.Slots())
			}
			b.wake(parking.WordOf(p), 1, any, private, 1)
			b.woke(0)
		}},
		{"SET 1,3,5,6,7,12,15,17,1000,-1", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for _, n := range []uint64{1, 3, 5, 6, 7, 12, 15, 17, 1000, 1<<64 - 1} {
				b.is(fmt.Sprint("set ", n), b.SetSlots(n, 0), parking.ErrInvalid, syscall.EINVAL)
			}
		}},
		{"SET 2,4,8,16,1024,65536", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			for _, n := range []uint64{2, 4, 8, 16, 1024, 65536} {
				b.is(fmt.Sprint("set ", n), b.SetSlots(n, 0), nil, 0)
				if b.Slots() != int(n) {
					b.Errorf("%d slots after set %d", b.Slots(), n)
				}
			}
		}},
		{"SET 2^29, 2^31", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.SetSlots(8, 0)
			for _, n := range []uint64{1 << 29, 1 << 31} {
				b.is(fmt.Sprint("set ", n), b.SetSlots(n, 0), parking.ErrNoMemory, syscall.ENOMEM)
			}
			if b.Slots() != 8 {
				b.Errorf("%d slots", b.Slots())
			}
		}},
		{"SET 2^32", "Linux cuts the number to 32 bits and chooses the global hash", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("set", b.SetSlots(1<<32, 0), parking.ErrInvalid, syscall.EINVAL)
			if b.Immutable() {
				b.Error("the global hash was chosen")
			}
		}},
		{"SET 8 flag 1", "Linux has removed the flag; here it makes the choice final", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("set", b.SetSlots(8, parking.Immutable), nil, 0)
			b.is("set again", b.SetSlots(8, 0), parking.ErrBusy, syscall.EBUSY)
		}},
		{"SET 8 flag 2", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("set", b.SetSlots(8, 2), parking.ErrInvalid, syscall.EINVAL)
		}},
		{"SET 0; then 4, 0, 6; GET", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("set 0", b.SetSlots(0, 0), nil, 0)
			b.is("set 4", b.SetSlots(4, 0), parking.ErrBusy, syscall.EBUSY)
			b.is("set 0", b.SetSlots(0, 0), parking.ErrBusy, syscall.EBUSY)
			b.is("set 6", b.SetSlots(6, 0), parking.ErrInvalid, syscall.EINVAL)
			if b.Slots() != 0 {
				b.Errorf("%d slots", b.Slots())
			}
		}},
		{"SET 2, many waiters, GET; SET 64; SET 4 twice", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.SetSlots(2, 0)
			words := make128()
			for i, w := range words {
				b.wait(i, parking.WordOf(w), 0, any, private)
			}
			if b.Slots() != 2 {
				b.Errorf("grew to %d slots after SET 2", b.Slots())
			}
			for _, n := range []uint64{64, 4, 4} {
				b.is(fmt.Sprint("set ", n), b.SetSlots(n, 0), nil, 0)
			}
			for i, w := range words {
				b.wake(parking.WordOf(w), 1, any, private, 1)
				b.woke(i)
			}
		}},
		{"private and shared never match", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.wait(0, parking.WordOf(p), 0, any, private)
			b.wait(1, parking.WordOf(p), 0, any, 0)
			b.wake(parking.WordOf(p), 10, any, 0, 1)
			b.woke(1)
			b.wake(parking.WordOf(p), 10, any, private, 1)
			b.woke(0)
		}},
		{"private and shared never match, also in the global hash", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.SetSlots(0, 0)
			b.wait(0, parking.WordOf(p), 0, any, private)
			b.wake(parking.WordOf(p), 10, any, 0, 0)
			b.wake(parking.WordOf(p), 10, any, private, 1)
			b.woke(0)
		}},
		{"shared words match across tables", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			other := parking.NewNUMATable(nil, nil, nil, b.Table)
			b.wait(0, parking.WordOf(p), 0, any, 0)
			if n, err := other.Wake(parking.WordOf(p), 1, any, 0); n != 1 || err != nil {
				b.Error(n, err)
			}
			b.woke(0)
		}},
		{"NUMA waiter, plain private wake", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.wait(0, pair.Word(), 0, any, parking.NUMA|private)
			b.wake(pair.Word(), 10, any, private, 0)
			b.wake(pair.Word(), 10, any, parking.NUMA|private, 1)
			b.woke(0)
		}},
		{"NUMA waiter, plain wake in the global hash", "on Linux the node is not part of the match, and whether they meet depends on the number of nodes", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.SetSlots(0, 0)
			b.wait(0, pair.Word(), 0, any, parking.NUMA|private)
			b.wake(pair.Word(), 10, any, private, 0)
			b.wake(pair.Word(), 10, any, parking.NUMA|private, 1)
			b.woke(0)
		}},
		{"plain private waiter, NUMA wake", "", func(b *bench, p, q *uint32, pair *parking.NUMAWord) {
			b.wait(0, pair.Word(), 0, any, private)
			b.wake(pair.Word(), 10, any, parking.NUMA|private, 0)
			b.wake(pair.Word(), 10, any, private, 1)
			b.woke(0)
		}},
		{"context ended", "what a signal without SA_RESTART is to a thread", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.is("equal", b.Wait(parking.WordOf(p), 0, any, private, parking.Limit{Context: canceled()}), parking.ErrCanceled, syscall.EINTR)
			b.is("differs", b.Wait(parking.WordOf(p), 1, any, private, parking.Limit{Context: canceled()}), parking.ErrAgain, syscall.EAGAIN)
		}},
		{"context ends, a later wake finds nobody", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Limit{Context: ctx}), parking.ErrCanceled, syscall.EINTR)
			b.wake(parking.WordOf(p), 1, any, private, 0)
		}},
		{"timed waiters during continuous resizing", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.whileResizing(func() {
				concurrently(8, func(int) {
					b.is("wait", b.Wait(parking.WordOf(p), 0, any, private, parking.Within(10*time.Millisecond)), parking.ErrTimedOut, syscall.ETIMEDOUT)
				})
			})
		}},
		{"5 waiters woken singly during continuous resizing", "", func(b *bench, p, q *uint32, _ *parking.NUMAWord) {
			b.waitMany(5, parking.WordOf(p))
			b.whileResizing(func() {
				for i := range 5 {
					b.wake(parking.WordOf(p), 1, any, private, 1)
					b.woke(i)
				}
			})
		}},
	}
	if len(rows) < 60 {
		t.Errorf("only %d rows", len(rows))
	}
	deviations := 0
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.deviation != "" {
				deviations++
				t.Logf("differs from Linux: %s", row.deviation)
			}
			b := newBench(t)
			words := make([]uint32, 64)
			row.check(b, &words[0], &words[32], &parking.NUMAWord{Node: parking.NoNode})
			b.done()
		})
	}
	t.Logf("%d rows, %d deviations", len(rows), deviations)
}

func (b *bench) node(w *parking.NUMAWord, want int32) {
	b.Helper()
	if got := atomic.LoadInt32(&w.Node); got != want {
		b.Errorf("the node word is %d, %d expected", got, want)
	}
}

func (b *bench) requeue(from, to *uint32, wake, move, woken, moved int) {
	b.Helper()
	w, m, err := b.CmpRequeue(parking.WordOf(from), parking.WordOf(to), 0, wake, move, private)
	if w != woken || m != moved || err != nil {
		b.Errorf("requeue %d/%d: %d/%d, %v; %d/%d expected", wake, move, w, m, err, woken, moved)
	}
}

func (b *bench) behind(p, q *uint32) {
	for i := range 3 {
		b.wait(i, parking.WordOf(p), 0, parking.AllBits, private)
	}
	for i := range 3 {
		b.wait(3+i, parking.WordOf(q), 0, parking.AllBits, private)
	}
	b.requeue(p, q, 0, 10, 0, 3)
	for _, n := range []int{3, 4, 5, 0, 1, 2} {
		b.wake(parking.WordOf(q), 1, parking.AllBits, private, 1)
		b.woke(n)
	}
}

// wakeOp has two waiters on each word.
func (b *bench) wakeOp(p, q *uint32, each int, op parking.Op, n1, n2, want int) {
	b.Helper()
	for i := range each {
		b.wait(i, parking.WordOf(p), 0, parking.AllBits, private)
		b.wait(10+i, parking.WordOf(q), 0, parking.AllBits, private)
	}
	if n, err := b.WakeOp(parking.WordOf(p), n1, parking.WordOf(q), n2, op, private); n != want || err != nil {
		b.Errorf("woke %d, %v; %d expected", n, err, want)
	}
	switch want {
	case 1:
		b.woke(0)
	case 2:
		b.woke(0, 10)
	}
	left := 2*each - want
	n1, _ = b.Wake(parking.WordOf(p), 10, parking.AllBits, private)
	n2, _ = b.Wake(parking.WordOf(q), 10, parking.AllBits, private)
	if n1+n2 != left {
		b.Errorf("%d and %d were left", n1, n2)
	}
	for range left {
		<-b.awake
	}
}

func entries(words ...*uint32) []parking.WaitEntry {
	e := make([]parking.WaitEntry, len(words))
	for i, p := range words {
		e[i] = parking.WaitEntry{Word: parking.WordOf(p), Flags: private}
	}
	return e
}

func pairEntries(pairs []*parking.NUMAWord) []parking.WaitEntry {
	e := make([]parking.WaitEntry, len(pairs))
	for i, p := range pairs {
		e[i] = parking.WaitEntry{Word: p.Word(), Flags: parking.NUMA}
	}
	return e
}

func make128() []*uint32 {
	words := make([]uint32, parking.MaxWaitV)
	list := make([]*uint32, len(words))
	for i := range words {
		list[i] = &words[i]
	}
	return list
}

// waitV starts a waiter on several words and returns when it is queued on all.
func (b *bench) waitV(e []parking.WaitEntry) <-chan int {
	n := b.waiting()
	got := make(chan int, 1)
	go func() {
		i, err := b.WaitV(e, parking.Limit{})
		if err != nil {
			b.Error(err)
		}
		got <- i
	}()
	eventually(b, "the waiter is queued", func() bool { return b.waiting() == n+len(e) })
	return got
}

func (b *bench) index(got <-chan int, want int) {
	b.Helper()
	select {
	case i := <-got:
		if i != want {
			b.Errorf("index %d, %d expected", i, want)
		}
	case <-time.After(patience):
		b.Fatal("still waiting")
	}
}

func (b *bench) whileResizing(f func()) {
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				b.SetSlots(someSizes[i%len(someSizes)], 0)
				time.Sleep(10 * time.Microsecond)
			}
		}
	}()
	f()
	close(stop)
	<-stopped
}
