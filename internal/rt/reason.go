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

// String returns what a goroutine dump shows.
func (r Reason) String() string { return reasonTexts[r] }

var reasonTexts = [numReasons]string{
	ReasonSemacquire:           "semacquire",
	ReasonMutexLock:            "sync.Mutex.Lock",
	ReasonRWMutexRLock:         "sync.RWMutex.RLock",
	ReasonRWMutexLock:          "sync.RWMutex.Lock",
	ReasonCondWait:             "sync.Cond.Wait",
	ReasonWaitGroupWait:        "sync.WaitGroup.Wait",
	ReasonWaitGroupWaitDurable: "sync.WaitGroup.Wait (durable)",
}
