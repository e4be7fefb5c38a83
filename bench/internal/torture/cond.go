package torture

import (
	"fmt"
	"sync"
)

// buffered is the capacity of a condRoom's buffer: small, so that both sides wait.
const buffered = 4

// condRoom is a bounded buffer. Each item draws one Signal, so a signal that gets lost, for instance with a waiter that
// gave up as it came, leaves an item and its consumer waiting for each other.
type condRoom struct {
	place
	mu                sync.Locker
	notEmpty, notFull cond
	shut              func() bool
	ring              [buffered]item
	put, taken        uint64 // items ever
	first             int32  // producer
	sent, received    []uint64
}

// item is the seq'th of its producer.
type item struct {
	producer int32
	seq      uint64
}

func (s *session) enlistCond(i int) {
	half := (s.Members + 1) / 2
	r := &condRoom{
		place: place{name: fmt.Sprintf("cond %d", i)}, mu: s.locks.mutex(), shut: s.gate.shut.Load,
		first: int32(len(s.members) + 1), sent: make([]uint64, half), received: make([]uint64, half),
	}
	if i%2 == 1 {
		r.mu = s.locks.rwMutex()
	}
	r.notEmpty, r.notFull = s.locks.cond(r.mu), s.locks.cond(r.mu)
	s.crew("cond", half, r.produce)
	s.crew("cond", half, r.consume)
	s.rooms = append(s.rooms, r)
}

func (r *condRoom) full() bool  { return r.put-r.taken == buffered }
func (r *condRoom) empty() bool { return r.put == r.taken }

func (r *condRoom) produce(m *member) {
	r.mu.Lock()
	for r.full() && !r.shut() {
		m.waitFor(r.notFull)
	}
	if r.full() {
		r.mu.Unlock()
		return
	}
	sent := &r.sent[m.id-r.first]
	*sent++
	r.ring[r.put%buffered] = item{m.id, *sent}
	r.put++
	r.occupy(m)
	r.unlockAndTell(m, r.notEmpty)
}

func (r *condRoom) consume(m *member) {
	r.mu.Lock()
	for r.empty() && !r.shut() {
		m.waitFor(r.notEmpty)
	}
	if r.empty() {
		r.mu.Unlock()
		return
	}
	got := r.ring[r.taken%buffered]
	r.taken++
	received := &r.received[got.producer-r.first]
	if *received++; *received != got.seq {
		m.s.fail("conservation: %s gave out item %d of member %d as number %d", r.name, got.seq, got.producer, *received)
	}
	r.occupy(m)
	r.unlockAndTell(m, r.notFull)
}

// unlockAndTell tells one waiter, sometimes all, before or after the unlock.
func (r *condRoom) unlockAndTell(m *member, c cond) {
	tell := c.Signal
	if m.oneIn(32) {
		tell = c.Broadcast
	}
	if m.oneIn(2) {
		tell()
		r.mu.Unlock()
	} else {
		r.mu.Unlock()
		tell()
	}
}

func (r *condRoom) rouse() {
	r.mu.Lock()
	r.notEmpty.Broadcast()
	r.notFull.Broadcast()
	r.mu.Unlock()
}

func (r *condRoom) inspect() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent, received := sum(r.sent), sum(r.received); sent != r.put || received != r.taken || r.entered != sent+received {
		return fmt.Errorf("conservation: of %s's %d items %d were put, %d taken, %d received, in %d sections", r.name, sent, r.put, r.taken, received, r.entered)
	}
	return nil
}

func sum(counts []uint64) uint64 {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	return total
}
