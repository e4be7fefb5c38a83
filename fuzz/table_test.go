package fuzz

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hqsync/hqsync/parking"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	words    = 5
	maxOps   = 60
	maxAtOne = 24 // goroutines that wait at the same time
	patience = time.Minute
)

// An op is one instruction: what, and two operands.
type op struct{ what, a, b byte }

const (
	opWait = iota
	opWaitOrRefuse
	opWaitV
	opWake
	opRequeue
	opWakeOp
	opCancel
	opResize
	opUnpark
	opClose
	numOps
)

func decode(data []byte) (ops []op) {
	for len(data) >= 3 && len(ops) < maxOps {
		ops = append(ops, op{data[0] % numOps, data[1], data[2]})
		data = data[3:]
	}
	return ops
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{opWait, 0, 1, opWait, 0, 2, opWake, 0, 1, opWake, 0, 3})
	f.Add([]byte{opWait, 1, 0, opWait, 1, 0, opWait, 1, 0, opRequeue, 1, 0x42, opResize, 3, 0, opWake, 2, 0xff, opUnpark, 1, 1})
	f.Add([]byte{opWaitV, 0x1f, 0, opWait, 3, 0, opWake, 3, 0x1f, opWaitV, 3, 0, opRequeue, 0, 0x11, opWake, 1, 0xff})
	f.Add([]byte{opWait, 0, 0, opCancel, 0, 0, opWait, 0, 0, opWaitV, 7, 0, opClose, 0, 0xff, opWait, 0, 0})
	f.Add([]byte{opWait, 0, 0, opResize, 0, 0, opWait, 1, 0, opResize, 5, 1, opWakeOp, 0x10, 0x13, opUnpark, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		ops := decode(data)
		runAgainstModel(t, ops)
		runAtOnce(t, ops)
	})
}

// A waiting is one goroutine in Wait or WaitV.
type waiting struct {
	cancel  context.CancelFunc
	done    chan struct{}
	index   int
	err     error
	entries int // in queues
}

// An entry is one place in a queue of the model.
type entry struct {
	w     *waiting
	index int
	mask  uint32
}

type machine struct {
	*testing.T
	tab    *parking.Table
	word   [words]uint32
	queues [words][]entry
	asleep []*waiting
	fixed  bool
	closed bool
}

func (m *machine) w(i int) parking.Word { return parking.WordOf(&m.word[i]) }

func runAgainstModel(t *testing.T, ops []op) {
	m := &machine{T: t, tab: new(parking.Table)}
	for _, o := range ops {
		m.step(o)
		queued := 0
		for _, q := range m.queues {
			queued += len(q)
		}
		if n := m.tab.Stats().Parked; n != queued {
			t.Fatalf("after %v %d are queued, not %d", o, n, queued)
		}
	}
	if !m.closed {
		for i := range m.queues {
			m.wake(i, 1000, parking.AllBits)
		}
	}
	if len(m.asleep) != 0 {
		t.Fatalf("%d goroutines are left", len(m.asleep))
	}
}

func (m *machine) step(o op) {
	i, j := int(o.a)%words, int(o.b)%words
	switch o.what {
	case opWait:
		m.wait([]parking.WaitEntry{{Word: m.w(i), Flags: parking.Private}}, []int{i}, uint32(o.b)%8+1, false)
	case opWaitOrRefuse:
		m.wait([]parking.WaitEntry{{Word: m.w(i), Flags: parking.Private, Val: uint32(o.b % 2)}}, []int{i}, parking.AllBits, false)
	case opWaitV:
		var list []parking.WaitEntry
		var at []int
		for k := range words {
			if o.a>>k&1 != 0 {
				list = append(list, parking.WaitEntry{Word: m.w(k), Flags: parking.Private})
				at = append(at, k)
			}
		}
		if len(list) != 0 {
			if o.b%8 == 7 {
				list[len(list)-1].Val = 1
			}
			m.wait(list, at, parking.AllBits, true)
		}
	case opWake:
		m.wake(i, int(o.b>>3)%8, uint32(o.b)%8)
	case opRequeue:
		m.requeue(i, j, int(o.a>>4)%4, int(o.b>>4)%8)
	case opWakeOp:
		m.wakeOp(i, int(o.a>>4)%4, j, int(o.b>>4)%4)
	case opCancel:
		if len(m.asleep) != 0 {
			m.cancelOne(m.asleep[int(o.a)%len(m.asleep)])
		}
	case opResize:
		m.resize(uint64(2)<<(o.a%8)*uint64(o.a>>7^1), uint32(o.b>>7))
	case opUnpark:
		m.unpark(i, o.b%2 == 0)
	case opClose:
		if o.b == 0xff {
			m.close()
		}
	}
}

// wait starts a goroutine and returns when it is queued or has returned.
func (m *machine) wait(list []parking.WaitEntry, at []int, mask uint32, v bool) {
	if len(m.asleep) == maxAtOne {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &waiting{cancel: cancel, done: make(chan struct{})}
	limit := parking.Limit{Context: ctx}
	go func() {
		defer close(w.done)
		if v {
			w.index, w.err = m.tab.WaitV(list, limit)
		} else {
			w.err = m.tab.Wait(list[0].Word, list[0].Val, mask, parking.Private, limit)
		}
	}()
	refused := slices.ContainsFunc(list, func(e parking.WaitEntry) bool { return e.Val != 0 })
	if m.closed || refused {
		m.returned(w)
		want := parking.ErrAgain
		if m.closed {
			want = parking.ErrClosed
		}
		if w.err != want {
			m.Fatalf("a wait that must be refused returned %d, %v", w.index, w.err)
		}
		return
	}
	before := 0
	for _, q := range m.queues {
		before += len(q)
	}
	for deadline := time.Now().Add(patience); m.tab.Stats().Parked != before+len(list); runtime.Gosched() {
		if time.Now().After(deadline) {
			m.Fatal("a waiter does not queue")
		}
	}
	for n, i := range at {
		m.queues[i] = append(m.queues[i], entry{w, n, mask})
	}
	w.entries = len(at)
	m.asleep = append(m.asleep, w)
}

func (m *machine) returned(w *waiting) {
	select {
	case <-w.done:
		w.cancel()
	case <-time.After(patience):
		m.Fatal("a goroutine that was woken does not return")
	}
}

// ended takes w out of the model.
func (m *machine) ended(w *waiting) {
	m.returned(w)
	for i := range m.queues {
		m.queues[i] = slices.DeleteFunc(m.queues[i], func(e entry) bool { return e.w == w })
	}
	m.asleep = slices.DeleteFunc(m.asleep, func(x *waiting) bool { return x == w })
}

// woke checks that the goroutines of these entries return for that reason.
func (m *machine) woke(list []entry) {
	lowest := map[*waiting]int{}
	for _, e := range list {
		if n, ok := lowest[e.w]; !ok || e.index < n {
			lowest[e.w] = e.index
		}
	}
	for w, index := range lowest {
		m.ended(w)
		if w.err != nil || w.index != index {
			m.Fatalf("woken at entry %d, it returned %d, %v", index, w.index, w.err)
		}
	}
}

// choose takes up to n entries whose mask overlaps out of a queue.
func (m *machine) choose(i, n int, mask uint32) (list []entry) {
	m.queues[i] = slices.DeleteFunc(m.queues[i], func(e entry) bool {
		if len(list) < n && e.mask&mask != 0 {
			list = append(list, e)
			return true
		}
		return false
	})
	return list
}

func (m *machine) check(what string, got, want int, err, wantErr error) {
	if m.closed && wantErr == nil {
		want, wantErr = 0, parking.ErrClosed
	}
	if got != want || err != wantErr {
		m.Fatalf("%s returned %d, %v; %d, %v expected", what, got, err, want, wantErr)
	}
}

func (m *machine) wake(i, n int, mask uint32) {
	got, err := m.tab.Wake(m.w(i), n, mask, parking.Private)
	if mask == 0 {
		m.check("Wake", got, 0, err, parking.ErrInvalid)
		return
	}
	list := m.choose(i, n, mask)
	m.check("Wake", got, len(list), err, nil)
	m.woke(list)
}

func (m *machine) requeue(i, j, wake, move int) {
	woken, moved, err := m.tab.CmpRequeue(m.w(i), m.w(j), 0, wake, move, parking.Private)
	list := m.choose(i, wake, parking.AllBits)
	want := min(move, len(m.queues[i]))
	if i != j {
		m.queues[j] = append(m.queues[j], m.queues[i][:want]...)
		m.queues[i] = m.queues[i][want:]
	}
	m.check("CmpRequeue woke and", woken, len(list), err, nil)
	m.check("CmpRequeue moved and", moved, want, err, nil)
	m.woke(list)
}

func (m *machine) wakeOp(i, n1, j, n2 int) {
	op := parking.Op{Kind: parking.OpOr, Compare: parking.Comparison(n1 % 2)} // 0 equals 0, or does not differ from it
	got, err := m.tab.WakeOp(m.w(i), n1, m.w(j), n2, op, parking.Private)
	list := m.choose(i, n1, parking.AllBits)
	if n1%2 == 0 {
		list = append(list, m.choose(j, n2, parking.AllBits)...)
	}
	m.check("WakeOp", got, len(list), err, nil)
	m.woke(list)
}

func (m *machine) cancelOne(w *waiting) {
	w.cancel()
	m.ended(w)
	if w.err != parking.ErrCanceled {
		m.Fatalf("a cancelled wait returned %v", w.err)
	}
}

func (m *machine) resize(n uint64, flags uint32) {
	before := m.tab.Slots()
	err := m.tab.SetSlots(n, flags)
	switch {
	case m.fixed:
		m.check("SetSlots", m.tab.Slots(), before, err, parking.ErrBusy)
	case m.closed:
		m.check("SetSlots", m.tab.Slots(), before, err, parking.ErrClosed)
	default:
		m.check("SetSlots", m.tab.Slots(), int(n), err, nil)
		m.fixed = n == 0 || flags == parking.Immutable
	}
}

// unpark uses the layer below on the same key.
func (m *machine) unpark(i int, one bool) {
	key := parking.Key{Addr: parking.AddrOf(&m.word[i])}
	n, got := len(m.queues[i]), 0
	if one {
		n = min(n, 1)
		got = m.tab.UnparkOne(key, nil).Unparked
	} else {
		got = m.tab.UnparkAll(key, nil).Unparked
	}
	if got != n {
		m.Fatalf("unparked %d, %d expected", got, n)
	}
	m.woke(m.choose(i, n, parking.AllBits))
}

func (m *machine) close() {
	if err := m.tab.Close(); err != nil {
		m.Fatal(err)
	}
	m.closed = true
	for len(m.asleep) > 0 {
		w := m.asleep[0]
		m.ended(w)
		if w.err != parking.ErrClosed {
			m.Fatalf("a wait in a closed table returned %v", w.err)
		}
	}
}

// runAtOnce runs the program on several goroutines.
func runAtOnce(t *testing.T, ops []op) {
	const crew = 6
	var tab parking.Table
	var word [words]uint32
	var given, taken atomic.Int64
	var wg sync.WaitGroup
	timer := time.AfterFunc(patience, func() { panic("the program does not end") })
	defer timer.Stop()
	for g := range crew {
		wg.Go(func() {
			for n := g; n < len(ops); n += crew {
				o := ops[n]
				i, j := int(o.a)%words, int(o.b)%words
				limit := parking.Within(time.Duration(o.b) * time.Microsecond)
				w := func(i int) parking.Word { return parking.WordOf(&word[i]) }
				woken := 0
				switch o.what {
				case opWait, opWaitOrRefuse:
					if tab.Wait(w(i), 0, uint32(o.b)%8+1, parking.Private, limit) == nil {
						taken.Add(1)
					}
				case opWaitV: // on one word, since it does not tell how many wake-ups it used
					if _, err := tab.WaitV([]parking.WaitEntry{{Word: w(i), Flags: parking.Private}}, limit); err == nil {
						taken.Add(1)
					}
				case opWake:
					woken, _ = tab.Wake(w(i), int(o.b>>3), uint32(o.b)%8, parking.Private)
				case opRequeue:
					woken, _, _ = tab.Requeue(w(i), w(j), int(o.a>>4)%4, int(o.b>>4), parking.Private)
				case opWakeOp:
					woken, _ = tab.WakeOp(w(i), int(o.a>>4), w(j), int(o.b>>4), parking.Op{Kind: parking.OpOr}, parking.Private)
				case opResize:
					tab.SetSlots(uint64(2)<<(o.a%8), 0)
				case opUnpark:
					woken = tab.UnparkAll(parking.Key{Addr: parking.AddrOf(&word[i])}, nil).Unparked
				case opClose:
					if o.b == 0xff {
						tab.Close()
					}
				}
				given.Add(int64(woken))
			}
		})
	}
	wg.Wait()
	if given.Load() != taken.Load() {
		t.Fatalf("%d wake-ups were given, %d received", given.Load(), taken.Load())
	}
	if n := tab.Stats().Parked; n != 0 {
		t.Fatalf("%d are still queued", n)
	}
}
