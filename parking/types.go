package parking

import (
	"context"
	"time"

	"github.com/hqsync/hqsync/internal/rt"
)

// A Key says what goroutines wait for. Two operations meet if their keys are
// equal and they use the same Table.
//
// Addr is an address as a number, so the table keeps nothing alive: whoever
// parks must keep the word alive until Park returns.
type Key struct {
	Addr uintptr

	// Node says which NUMA node's buckets to use: the node's id + 1, or 0 for none
	// in particular. A node that the machine does not have counts as none. It is
	// part of the key. Values from 2^30 are reserved.
	Node uint32
}

// public returns k without the bits that are for this package only.
func (k Key) public() Key { return Key{k.Addr, k.Node & nodeMask} }

// A ParkToken is what a waiter tells the filter of UnparkFilter about itself.
type ParkToken uintptr

// An UnparkToken is what a waker tells the waiter that it wakes. The largest
// value is reserved.
type UnparkToken uintptr

// closedToken ends a wait because the table is closed.
const closedToken = ^UnparkToken(0)

// An Outcome says why Park returned.
type Outcome uint8

const (
	Unparked Outcome = iota // somebody called an Unpark function
	Invalid                 // validate returned false; the goroutine did not sleep
	TimedOut                // the deadline passed
	Canceled                // the context was cancelled
	Closed                  // the table has been closed
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return "unknown"
}

var outcomes = [...]string{"unparked", "invalid", "timed out", "canceled", "closed"}

// A Result is what Park returns.
type Result struct {
	Ending             // apart, since structs of more than four fields are not kept in registers
	Token  UnparkToken // given by the waker if Outcome is Unparked, else 0
	Since  int64       // for Options.Since of the next Park, if it goes on with the same wait

	next *waiter // whom to wake in turn
}

// An Ending says how a wait ended.
type Ending struct {
	Outcome Outcome
	More    bool // Unparked: others were queued on the key when this waiter was taken off it
}

// A Reason is what a goroutine dump shows for a parked goroutine.
type Reason = rt.Reason

// The reasons that package sync's own waits have.
const (
	ReasonSemacquire           = rt.ReasonSemacquire
	ReasonMutexLock            = rt.ReasonMutexLock
	ReasonRWMutexRLock         = rt.ReasonRWMutexRLock
	ReasonRWMutexLock          = rt.ReasonRWMutexLock
	ReasonCondWait             = rt.ReasonCondWait
	ReasonWaitGroupWait        = rt.ReasonWaitGroupWait
	ReasonWaitGroupWaitDurable = rt.ReasonWaitGroupWaitDurable
)

// Options adjust one Park. The zero value queues at the back and waits for ever.
type Options struct {
	Reason Reason
	Front  bool // queue ahead of those who wait already: for a waiter that was woken and lost

	// RaceEdge tells the race detector that the Unpark call that ends the wait
	// synchronizes before Park's return.
	RaceEdge bool

	// Untimed says that nobody asks for how long: the clock is not looked at, and
	// Since and Delay are 0, as is what Waiters tells, until the waiter is moved to
	// another key.
	Untimed bool

	Token    ParkToken
	Deadline time.Time       // zero = none. One without a monotonic reading is converted when the wait begins.
	Context  context.Context // nil = none
	Since    int64           // monotonic ns at which the waiting began, from an earlier Result; 0 = now
	Skip     int             // frames above Park's caller that execution traces leave out
}

// An UnparkResult says what an Unpark function did.
type UnparkResult struct {
	Unparked int  // goroutines that were woken
	Requeued int  // goroutines that were moved to another key
	More     bool // goroutines are left on the key

	// What the first goroutine that was woken had in its Options, 0 if none was:
	// Since, or when it came to this key, in monotonic ns, and Token.
	Since int64
	Token ParkToken

	// Delay is what the mutex profile charges to whoever woke the first waiter, in
	// ns: the waits, since the last Delay, of all that were queued. 0 unless
	// contention is profiled, and from UnparkFilter and UnparkRequeue.
	Delay int64
}

// A FilterOp is a filter's verdict on one waiter.
type FilterOp uint8

const (
	Unpark FilterOp = iota // wake it
	Skip                   // leave it
	Stop                   // leave it and all behind it
)

// A RequeueOp says what UnparkRequeue is to do with the waiters of the source.
type RequeueOp uint8

const (
	RequeueAbort         RequeueOp = iota // nothing
	UnparkOneRequeueRest                  // wake the first, move the rest
	RequeueAll                            // move all
	RequeueOne                            // move the first
)
