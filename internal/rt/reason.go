package rt

// A Reason says what a parked goroutine waits for. It is what a goroutine dump
// shows in brackets, and what execution traces and the mutex metric count by.
type Reason uint8

const (
	ReasonSemacquire           Reason = iota // [semacquire]: any wait that is none of the below
	ReasonMutexLock                          // [sync.Mutex.Lock]
	ReasonRWMutexRLock                       // [sync.RWMutex.RLock]
	ReasonRWMutexLock                        // [sync.RWMutex.Lock]
	ReasonCondWait                           // [sync.Cond.Wait]; durably blocking in a synctest bubble
	ReasonWaitGroupWait                      // [sync.WaitGroup.Wait]
	ReasonWaitGroupWaitDurable               // the same, durably blocking in a synctest bubble

	numReasons
)

// A Wake says why Park returned.
type Wake uint8

const (
	Signalled Wake = iota // by the one Unpark of this wait
	Kicked                // by Kick: a deadline passed or a context was cancelled
)

// State of a Parker: three low bits, and above them the generation, which
// changes with every wait so that a Kick meant for an earlier one misses.
//
//	T1  idle      -> queued     Prepare    owner, before the waiter can be found by others
//	T2  queued    -> parked     commit     owner, on g0 inside gopark; fails after T3 or T5
//	T3  queued    -> signalled  Unpark     the owner is still running: nothing to ready
//	T4  parked    -> signalled  Unpark     the waker readies the goroutine
//	T5  queued    -> kicked     Kick       as T3
//	T6  parked    -> kicked     Kick       as T4
//	T7  kicked    -> signalled  Unpark     the owner has been readied by T6 already
//	T8  kicked    -> queued     Rearm      owner found that a waker has dequeued it: T3 or T4 is coming
//	T9  signalled -> idle       Park       owner, generation + 1
//	T10 kicked    -> idle       Leave      owner has dequeued itself: nobody else knows the Parker
//	T11 queued    -> idle       Leave      as T10, before it parked
//
// I1 the goroutine is readied exactly once per transition out of parked.
// I2 after T3, T4 or T7 the waker does not touch the Parker: the owner may
// already use it for its next wait.
const (
	idle = iota
	queued
	parked
	signalled
	kicked

	stateBits = 3
	stateMask = 1<<stateBits - 1
	genUnit   = 1 << stateBits
)
