package hq

import "time"

// Stats is what all Locks of the process have done and are doing. Numbers of
// different fields may be of slightly different moments. Builds that cannot pin
// count nothing.
type Stats struct {
	InHQ    int // locks in mode HQ now, each with one of Rosters
	MostHQ  int // most of them at one time
	Rosters int // locks that can be in mode HQ at one time

	Inflations uint64 // times that a lock went to mode HQ
	Deflations uint64 // times that one went back to mode Q
	Exhausted  uint64 // times that one stayed in mode Q because all rosters were in use

	LocalHandOvers  uint64 // hand-overs in a queue to a waiter of the same domain
	RemoteHandOvers uint64 // to one of another domain
	Steals          uint64 // times that the head of a queue saw others take a free lock
	Abandons        uint64 // times that a waiter left a queue because its budget was spent
	Skips           uint64 // times that a waiter was passed over because its thread seemed to be off its CPU

	// LongestPinned is for how long a wait has kept a P from being preempted at
	// most, as far as waits have looked at the clock. They do so about every
	// microsecond; the time between two looks that are more than 50 us apart is
	// not counted, since the thread was off its CPU.
	LongestPinned time.Duration

	// LongestSpun is the same without the time between two looks that are more
	// than 10 us apart: an interrupt, say, or a neighbour of this virtual machine.
	// It is what the longest wait has done itself.
	LongestSpun time.Duration
}

// ReadStats returns the counts. They are kept by P, so that counting costs a lock
// no shared memory.
func ReadStats() Stats { return readStats() }
