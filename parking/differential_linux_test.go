package parking_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hqsync/hqsync/internal/numatest"
	"github.com/hqsync/hqsync/internal/race"
	"github.com/hqsync/hqsync/parking"
)

// TestLinuxDifferential runs random programs of futex calls against the kernel,
// in child processes, and against a Table, and compares every outcome: what each
// call returned, and which waiters returned what after it.
//
// One thread makes all calls but the waits, and makes the next only when
// everybody whom the last one woke has returned, so outcomes are determined, but
// for a few that the kernel leaves to chance. These are kept out: the order in a
// bucket shared by source and target of a requeue (the child sees to it that
// there is none), resizes to few slots together with requeues, operations of one
// word with different flags, counts of 0 in WAKE_OP, two entries of one waitv
// woken at once.
func TestLinuxDifferential(t *testing.T) {
	if os.Getenv(differentialEnv) != "" {
		t.Skip("this is the child")
	}
	if emulated && !numatest.Emulated() {
		t.Skip("an emulator does not pass the calls on")
	}
	if unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("the kernel's side of this test passes 64-bit times and pointers")
	}
	if err := kernelHasFutex2(); err != nil {
		t.Skipf("this kernel has not the calls: %v", err)
	}
	first := seed(t)
	var total, wakes atomic.Int64
	t.Run("kinds", func(t *testing.T) {
		for kind, name := range []string{withResizes: "resizes", withRequeues: "requeues", inGlobalHash: "global hash"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				compareKind(t, programKind(kind), first, &total, &wakes)
			})
		}
	})
	t.Logf("%d programs with %d wake-ups agree", total.Load(), wakes.Load())
	if !race.Enabled && total.Load() < 2000 {
		t.Errorf("only %d programs", total.Load())
	}
}

func compareKind(t *testing.T, kind programKind, first uint64, total, wakes *atomic.Int64) {
	n := 950
	if kind == withResizes { // the kernel takes tens of milliseconds for one
		n = 100
	}
	if race.Enabled {
		n /= 3
	}
	out, err := childWith(t, []string{fmt.Sprintf("%s=%d,%d,%d", differentialEnv, kind, first, n)}, "-test.run=^TestLinuxDifferentialChild$", "-test.v")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kernel := linesOf(out)
	if len(kernel) != n {
		t.Fatalf("the child ran %d programs of %d\n%s", len(kernel), n, out)
	}
	for i := range n {
		got := runProgram(kind, first+uint64(i), newTableSide(t, kind))
		if got != kernel[i] {
			t.Fatalf("program %d differs\nkernel %s\ntable  %s", i, kernel[i], got)
		}
		total.Add(1)
		wakes.Add(int64(strings.Count(got, "=ok")))
	}
}

const differentialEnv = "HQSYNC_DIFFERENTIAL"

type programKind int

const (
	withResizes programKind = iota
	withRequeues
	inGlobalHash
)

// TestLinuxDifferentialChild is the kernel's side: it prints a line of outcomes
// for each program.
func TestLinuxDifferentialChild(t *testing.T) {
	spec := os.Getenv(differentialEnv)
	if spec == "" {
		t.Skip("runs in child processes of TestLinuxDifferential")
	}
	var kind programKind
	var first uint64
	var n int
	fmt.Sscanf(spec, "%d,%d,%d", &kind, &first, &n)
	side := newKernelSide(t, kind)
	for i := range n {
		fmt.Printf("PROGRAM %s\n", runProgram(kind, first+uint64(i), side))
	}
	side.end()
}

func linesOf(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "PROGRAM "); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

const (
	diffWords   = 4
	diffWaiters = 8
)

// A side is what a program runs on. Waiters are numbered, words too. Flags are
// the same for the whole program.
type side interface {
	begin(flags parking.Flags, node int32)
	store(word int, val uint32)
	wait(waiter int, words []int, vals []uint32, mask uint32, limit string) // returns when it sleeps or is through
	wake(word, n int, mask uint32) string
	requeue(from, to int, cmp bool, val uint32, wake, move int) string
	wakeOp(w1, n1, w2, n2 int, op parking.Op) string
	setSlots(n uint64) string
	returned() []string // outcomes of the waiters that have returned since the last call
	finish() string     // node words and what else there is to compare
}

func runProgram(kind programKind, seed uint64, s side) string {
	rng := rand.New(rand.NewPCG(seed, uint64(kind)))
	flags := []parking.Flags{private, 0, parking.NUMA | private, parking.NUMA}[rng.IntN(4)]
	s.begin(flags, int32(rng.IntN(2)-1))
	var log []string
	say := func(format string, args ...any) {
		back := s.returned()
		slices.Sort(back)
		log = append(log, fmt.Sprintf(format, args...)+strings.Join(back, ""))
	}
	free := rng.Perm(diffWaiters)
	useV := rng.IntN(3) == 0
	masks := []uint32{1, 2, 3, 4, parking.AllBits}
	for range 10 + rng.IntN(10) {
		word, to := rng.IntN(diffWords), rng.IntN(diffWords)
		switch rng.IntN(10) {
		case 0, 1, 2, 3:
			if len(free) == 0 {
				continue
			}
			waiter := free[0]
			words, vals, mask := []int{word}, []uint32{0}, masks[rng.IntN(len(masks))]
			if useV && rng.IntN(2) == 0 {
				words, mask = rng.Perm(diffWords)[:1+rng.IntN(3)], 0
				if kind == withRequeues { // which may bring two entries of one waitv together
					words = words[:1]
				}
				vals = make([]uint32, len(words))
			}
			limit := []string{"", "", "", "", "past", "soon"}[rng.IntN(6)]
			if rng.IntN(6) == 0 {
				vals[rng.IntN(len(vals))] = 1
			}
			s.wait(waiter, words, vals, mask, limit)
			say("wait%d%v%v%s", waiter, words, vals, limit)
			if limit == "" {
				free = free[1:]
			}
		case 4, 5, 6:
			n := rng.IntN(4)
			mask := masks[rng.IntN(len(masks))]
			say("wake(%d,%d,%x)=%s", word, n, mask, s.wake(word, n, mask))
		case 7:
			if kind != withRequeues {
				continue
			}
			cmp, val, wake, move := rng.IntN(2) == 0, uint32(rng.IntN(4)/3), rng.IntN(3), rng.IntN(3)
			say("requeue(%d,%d,%v,%d,%d,%d)=%s", word, to, cmp, val, wake, move, s.requeue(word, to, cmp, val, wake, move))
		case 8:
			if kind == withResizes {
				n := uint64(2) << rng.IntN(10)
				say("slots(%d)=%s", n, s.setSlots(n))
			}
		case 9:
			if useV || flags&parking.NUMA != 0 {
				continue // the old call knows no nodes
			}
			op := parking.Op{Kind: parking.OpKind(rng.IntN(5)), Arg: 0, Compare: parking.Comparison(rng.IntN(6)), CmpArg: int32(rng.IntN(3) - 1)}
			if op.Kind == parking.OpXor && rng.IntN(2) == 0 {
				op.Arg = 4
			}
			say("wakeop(%d,%d,%v)=%s", word, to, op, s.wakeOp(word, 1+rng.IntN(2), to, 1+rng.IntN(2), op))
			s.store(to, 0)
		}
	}
	for w := range diffWords {
		say("end(%d)=%s", w, s.wake(w, 100, parking.AllBits))
	}
	return strings.Join(append(log, s.finish()), " ")
}

func errnoName(e syscall.Errno) string {
	if e == 0 {
		return "ok"
	}
	return unix.ErrnoName(e)
}

// The kernel's side.

const (
	sysWaitV, sysWake, sysWait, sysRequeue = 449, 454, 455, 456
	prFutexHash                            = 78
	sizeU32                                = 2
)

func kernelHasFutex2() error {
	var word uint32
	_, _, errno := syscall.Syscall6(sysWake, uintptr(unsafe.Pointer(&word)), 1, 1, sizeU32|uintptr(private), 0, 0)
	if errno == 0 {
		_, _, errno = syscall.Syscall6(unix.SYS_PRCTL, prFutexHash, 2, 0, 0, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// kernelWaitV is struct futex_waitv.
type kernelWaitV struct {
	val   uint64
	addr  uint64
	flags uint32
	_     uint32
}

type kernelWait struct {
	words []int
	vals  []uint32
	mask  uint32
	limit string
}

type kernelSide struct {
	t       *testing.T
	pages   []byte
	offsets []uintptr // of the words, all in buckets of their own
	flags   uintptr
	threads []*kernelThread
	out     chan string
}

type kernelThread struct {
	tid  int
	do   chan kernelWait
	busy atomic.Bool // has a wait to do
}

func newKernelSide(t *testing.T, kind programKind) *kernelSide {
	pages, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernelSide{t: t, pages: pages, out: make(chan string, 100)}
	for i := range diffWaiters {
		th := &kernelThread{do: make(chan kernelWait)}
		k.threads = append(k.threads, th)
		ready := make(chan bool)
		go k.run(i, th, ready)
		<-ready
	}
	slots := uint64(1 << 14)
	if kind == inGlobalHash {
		slots = 0
	}
	if got := k.setSlots(slots); got != "ok" {
		t.Fatalf("PR_FUTEX_HASH %d: %s", slots, got)
	}
	for i := range uintptr(diffWords) {
		k.offsets = append(k.offsets, 64+i*4096+i*64)
	}
	if kind == withRequeues {
		k.separate()
	}
	return k
}

// separate chooses words of which no two share a bucket: a requeue between such
// two leaves the order of arrival, others append.
func (k *kernelSide) separate() {
	for a := range k.offsets {
		for b := 0; b < a; b++ {
			for k.share(a, b) {
				k.offsets[a] += 8
			}
		}
	}
}

func (k *kernelSide) share(a, b int) bool {
	k.begin(private, 0)
	k.wait(0, []int{a}, []uint32{0}, parking.AllBits, "")
	k.wait(1, []int{b}, []uint32{0}, parking.AllBits, "")
	k.requeue(a, b, false, 0, 0, 1)
	k.returned()
	k.wake(b, 1, parking.AllBits)
	first := k.returned()
	k.wake(b, 1, parking.AllBits)
	k.returned()
	return first[0] == "{0=ok}"
}

func (k *kernelSide) addr(word int) uintptr {
	return uintptr(unsafe.Pointer(&k.pages[k.offsets[word]]))
}

func (k *kernelSide) pair(word int) *parking.NUMAWord {
	return (*parking.NUMAWord)(unsafe.Pointer(&k.pages[k.offsets[word]]))
}

func (k *kernelSide) begin(flags parking.Flags, node int32) {
	k.flags = sizeU32 | uintptr(flags)
	for w := range diffWords {
		*k.pair(w) = parking.NUMAWord{Node: node}
	}
}

func (k *kernelSide) store(word int, val uint32) { atomic.StoreUint32(&k.pair(word).Val, val) }

// run is a waiter's thread.
func (k *kernelSide) run(number int, th *kernelThread, ready chan bool) {
	runtime.LockOSThread()
	th.tid = unix.Gettid()
	close(ready)
	for w := range th.do {
		var deadline *unix.Timespec
		if w.limit != "" {
			deadline = new(unix.Timespec)
			unix.ClockGettime(unix.CLOCK_MONOTONIC, deadline)
			if w.limit == "past" {
				deadline.Sec--
			} else {
				*deadline = unix.NsecToTimespec(deadline.Nano() + 1e6)
			}
		}
		var r uintptr
		var errno syscall.Errno
		if w.mask != 0 {
			_, _, errno = unix.Syscall6(sysWait, k.addr(w.words[0]), uintptr(w.vals[0]), uintptr(w.mask), k.flags,
				uintptr(unsafe.Pointer(deadline)), unix.CLOCK_MONOTONIC)
		} else {
			list := make([]kernelWaitV, len(w.words))
			for i := range list {
				list[i] = kernelWaitV{val: uint64(w.vals[i]), addr: uint64(k.addr(w.words[i])), flags: uint32(k.flags)}
			}
			r, _, errno = unix.Syscall6(sysWaitV, uintptr(unsafe.Pointer(&list[0])), uintptr(len(list)), 0,
				uintptr(unsafe.Pointer(deadline)), unix.CLOCK_MONOTONIC, 0)
		}
		result := fmt.Sprintf("{%d=%s}", number, errnoName(errno))
		if errno == 0 && w.mask == 0 {
			result = fmt.Sprintf("{%d=ok,%d}", number, r)
		}
		k.out <- result
		th.busy.Store(false)
	}
}

// inCall reports whether the thread sleeps in a futex wait. A thread that has
// been woken does not, whether it has a CPU yet or not. Its state is looked at
// first: "syscall" shows the call also while a wake-up is on its way to the
// thread's CPU.
func (th *kernelThread) inCall() bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", th.tid))
	_, state, _ := strings.Cut(string(stat), ") ")
	if !strings.HasPrefix(state, "S") {
		return false
	}
	call, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", th.tid))
	return strings.HasPrefix(string(call), "455 ") || strings.HasPrefix(string(call), "449 ")
}

func (k *kernelSide) wait(waiter int, words []int, vals []uint32, mask uint32, limit string) {
	th := k.threads[waiter]
	th.busy.Store(true)
	th.do <- kernelWait{words, vals, mask, limit}
	for th.busy.Load() && (limit != "" || !th.inCall()) {
		time.Sleep(20 * time.Microsecond)
	}
}

func (k *kernelSide) returned() (list []string) {
	for _, th := range k.threads { // who is neither asleep nor through is on the way
		for th.busy.Load() && !th.inCall() {
			time.Sleep(10 * time.Microsecond)
		}
	}
	for {
		select {
		case s := <-k.out:
			list = append(list, s)
		default:
			return list
		}
	}
}

func (k *kernelSide) wake(word, n int, mask uint32) string {
	r, _, errno := unix.Syscall6(sysWake, k.addr(word), uintptr(mask), uintptr(n), k.flags, 0, 0)
	return fmt.Sprint(r, errnoName(errno))
}

func (k *kernelSide) requeue(from, to int, cmp bool, val uint32, wake, move int) string {
	if !cmp {
		val = atomic.LoadUint32(&k.pair(from).Val) // the new call always compares
	}
	list := [2]kernelWaitV{
		{val: uint64(val), addr: uint64(k.addr(from)), flags: uint32(k.flags)},
		{addr: uint64(k.addr(to)), flags: uint32(k.flags)},
	}
	r, _, errno := unix.Syscall6(sysRequeue, uintptr(unsafe.Pointer(&list)), 0, uintptr(wake), uintptr(move), 0, 0)
	if errno != 0 {
		return errnoName(errno)
	}
	return fmt.Sprint(r)
}

func (k *kernelSide) wakeOp(w1, n1, w2, n2 int, op parking.Op) string {
	const futexWakeOp, futexPrivate = 5, 128
	call := uintptr(futexWakeOp)
	if k.flags&uintptr(private) != 0 {
		call |= futexPrivate
	}
	encoded := uint32(op.Kind)<<28 | uint32(op.Compare)<<24 | op.Arg&0xfff<<12 | uint32(op.CmpArg)&0xfff
	r, _, errno := unix.Syscall6(unix.SYS_FUTEX, k.addr(w1), call, uintptr(n1), uintptr(n2), k.addr(w2), uintptr(encoded))
	return fmt.Sprint(r, errnoName(errno), atomic.LoadUint32(&k.pair(w2).Val))
}

func (k *kernelSide) setSlots(n uint64) string {
	_, _, errno := unix.Syscall6(unix.SYS_PRCTL, prFutexHash, 1, uintptr(n), 0, 0, 0)
	return errnoName(errno)
}

func (k *kernelSide) finish() string {
	var nodes []int32
	for w := range diffWords {
		nodes = append(nodes, k.pair(w).Node)
	}
	return fmt.Sprint("nodes", nodes)
}

func (k *kernelSide) end() {
	for _, th := range k.threads {
		close(th.do)
	}
}

// The table's side.

type tableSide struct {
	t       *testing.T
	tab     *parking.Table
	pairs   []parking.NUMAWord
	flags   parking.Flags
	out     chan string
	pending int // waiters that have returned, or must because a waker was told so
}

func newTableSide(t *testing.T, kind programKind) *tableSide {
	s := &tableSide{t: t, out: make(chan string, 100), pairs: make([]parking.NUMAWord, diffWords)}
	s.tab = parking.NewNUMATable([]int{0}, func() int { return 0 }, nil, nil)
	if kind == inGlobalHash {
		s.setSlots(0)
	}
	return s
}

func (s *tableSide) begin(flags parking.Flags, node int32) {
	s.flags = flags
	for i := range s.pairs {
		s.pairs[i].Node = node
	}
}

func (s *tableSide) word(i int) parking.Word {
	if s.flags&parking.NUMA != 0 {
		return s.pairs[i].Word()
	}
	return parking.WordOf(&s.pairs[i].Val)
}

func (s *tableSide) store(word int, val uint32) { atomic.StoreUint32(&s.pairs[word].Val, val) }

func (s *tableSide) waiting() (n int) {
	s.tab.Waiters(func(parking.WaiterInfo) bool { n++; return true })
	return n
}

func (s *tableSide) wait(waiter int, words []int, vals []uint32, mask uint32, limit string) {
	var l parking.Limit
	switch limit {
	case "past":
		l.Deadline = time.Now().Add(-time.Second)
	case "soon":
		l = parking.Within(time.Millisecond)
	}
	before := s.waiting()
	done := make(chan bool)
	go func() {
		defer close(done)
		if mask != 0 {
			err := s.tab.Wait(s.word(words[0]), vals[0], mask, s.flags, l)
			s.out <- fmt.Sprintf("{%d=%s}", waiter, nameOf(err))
			return
		}
		e := make([]parking.WaitEntry, len(words))
		for i, w := range words {
			e[i] = parking.WaitEntry{Word: s.word(w), Val: vals[i], Flags: s.flags}
		}
		i, err := s.tab.WaitV(e, l)
		if err == nil {
			s.out <- fmt.Sprintf("{%d=ok,%d}", waiter, i)
		} else {
			s.out <- fmt.Sprintf("{%d=%s}", waiter, nameOf(err))
		}
	}()
	for {
		select {
		case <-done:
			s.pending++
			return
		default:
		}
		if limit == "" && s.waiting() == before+len(words) {
			return
		}
		runtime.Gosched()
	}
}

func nameOf(err error) string {
	for _, e := range []syscall.Errno{syscall.EAGAIN, syscall.ETIMEDOUT, syscall.EINVAL, syscall.EBUSY, syscall.ENOSYS} {
		if opErr, ok := err.(interface{ Is(error) bool }); ok && opErr.Is(e) {
			return unix.ErrnoName(e)
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// returned waits for as many as have been woken: conservation, call by call.
func (s *tableSide) returned() (list []string) {
	for s.pending > 0 {
		select {
		case r := <-s.out:
			list = append(list, r)
			s.pending--
		case <-time.After(patience):
			s.t.Fatalf("%d goroutines were woken and did not return", s.pending)
		}
	}
	return list
}

func (s *tableSide) wake(word, n int, mask uint32) string {
	r, err := s.tab.Wake(s.word(word), n, mask, s.flags)
	s.pending += r
	return fmt.Sprint(r, nameOf(err))
}

func (s *tableSide) requeue(from, to int, cmp bool, val uint32, wake, move int) string {
	var w, m int
	var err error
	if cmp {
		w, m, err = s.tab.CmpRequeue(s.word(from), s.word(to), val, wake, move, s.flags)
	} else {
		w, m, err = s.tab.Requeue(s.word(from), s.word(to), wake, move, s.flags)
	}
	s.pending += w
	if err != nil {
		return nameOf(err)
	}
	return fmt.Sprint(w + m)
}

func (s *tableSide) wakeOp(w1, n1, w2, n2 int, op parking.Op) string {
	r, err := s.tab.WakeOp(s.word(w1), n1, s.word(w2), n2, op, s.flags)
	s.pending += r
	return fmt.Sprint(r, nameOf(err), atomic.LoadUint32(&s.pairs[w2].Val))
}

func (s *tableSide) setSlots(n uint64) string { return nameOf(s.tab.SetSlots(n, 0)) }

func (s *tableSide) finish() string {
	if n := s.waiting(); n != 0 {
		s.t.Errorf("%d goroutines are left", n)
	}
	var nodes []int32
	for i := range s.pairs {
		nodes = append(nodes, s.pairs[i].Node)
	}
	return fmt.Sprint("nodes", nodes)
}
