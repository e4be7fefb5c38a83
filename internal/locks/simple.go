package locks

// TAS is a word that everybody swaps until it was free.
type TAS struct {
	word atomicUint32
	_    [line - 4]byte
}

// Lock locks l.
func (l *TAS) Lock(int) {
	for l.word.Swap(1) != 0 {
		pause()
	}
}

// Unlock unlocks l.
func (l *TAS) Unlock(int) { storeRelease(&l.word, 0) }

const (
	firstBackOff   = 4    // pauses
	longestBackOff = 1024 // pauses
)

// TTAS looks before it swaps, and waits for a random time that doubles with each
// race lost (Anderson, "The Performance of Spin Lock Alternatives", 1990).
type TTAS struct {
	word    atomicUint32
	_       [line - 4]byte
	threads []ttasThread
}

// ttasThread is private to its thread.
type ttasThread struct {
	random random
	_      [line - 4]byte
}

// NewTTAS returns an unlocked TTAS.
func NewTTAS(threads int) *TTAS { return &TTAS{threads: make([]ttasThread, threads)} }

// Lock locks l.
func (l *TTAS) Lock(thread int) {
	if !l.word.CompareAndSwap(0, 1) {
		l.lockSlow(thread)
	}
}

func (l *TTAS) lockSlow(thread int) {
	for limit := uint32(firstBackOff); ; limit = min(2*limit, longestBackOff) {
		for l.word.Load() != 0 {
			pause()
		}
		if l.word.CompareAndSwap(0, 1) {
			return
		}
		backOff(1 + l.threads[thread].random.next(thread)%limit)
	}
}

// Unlock unlocks l.
func (l *TTAS) Unlock(int) { storeRelease(&l.word, 0) }

// Ticket serves in the order of tickets drawn (Mellor-Crummey and Scott 1991,
// section 2.2). Everybody spins on the same word.
type Ticket struct {
	next, serving atomicUint32
	_             [line - 8]byte
}

// Lock locks l.
func (l *Ticket) Lock(int) {
	mine := l.next.Add(1) - 1
	for l.serving.Load() != mine {
		pause()
	}
}

// Unlock unlocks l.
func (l *Ticket) Unlock(int) { storeRelease(&l.serving, l.serving.Load()+1) }
