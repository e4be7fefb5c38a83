//go:build sim && !sync2_std

package sync2

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// condProgram runs the given scripts on a Cond and a pile of tokens under its
// Locker, which newLocker makes: W waits for a token and takes it, C the same
// with a context that x cancels, and then leaves without a token; S adds a token
// and signals, s signals after unlocking; A adds three tokens and broadcasts, a
// broadcasts after unlocking; L only locks and unlocks.
//
// Every waiter that has not been cancelled must get away in the end, so a
// signal that is lost is a deadlock. There must be a token for each.
func condProgram(newLocker func() Locker, scripts ...string) sim.Program {
	var c *Cond
	var ctx *sim.Context
	var s section
	var tokens int
	take := func(wait func() error) {
		c.L.Lock()
		defer c.L.Unlock()
		for tokens == 0 {
			s.enter()
			if wait() != nil {
				s.enter()
				return
			}
		}
		s.enter()
		tokens--
	}
	give := func(n int, wake func(), unlockFirst bool) {
		c.L.Lock()
		s.enter()
		tokens += n
		if unlockFirst {
			c.L.Unlock()
			wake()
			return
		}
		wake()
		c.L.Unlock()
	}
	step := func(op rune) {
		switch op {
		case 'W':
			take(func() error { c.Wait(); return nil })
		case 'C':
			take(func() error { return c.WaitContext(ctx) })
		case 'x':
			ctx.Cancel()
		case 'S', 's':
			give(1, c.Signal, op == 's')
		case 'A', 'a':
			give(3, c.Broadcast, op == 'a')
		case 'L':
			c.L.Lock()
			s.enter()
			c.L.Unlock()
		}
	}
	return program(fmt.Sprint("cond ", scripts), func() {
		inWord = false
		c, ctx, s, tokens = NewCond(newLocker()), sim.NewContext(), section{}, 0
		nameLocker(c.L)
	}, step, func() error { return lockerAtRest(c.L) }, scripts)
}

func newMutex() Locker   { return new(Mutex) }
func newRWMutex() Locker { return new(RWMutex) }

// onFew is the program where there are few processors: Broadcast moves nobody,
// and waiters wake one another in turn.
func onFew(scripts ...string) sim.Program {
	p := condProgram(func() Locker { inWord = true; return new(Mutex) }, scripts...)
	p.Name += " few"
	return p
}

func nameLocker(l Locker) {
	switch l := l.(type) {
	case *Mutex:
		nameMutex(l, "")
	case *RWMutex:
		nameRWMutex(l)
	}
}

func lockerAtRest(l Locker) error {
	switch l := l.(type) {
	case *Mutex:
		if l.state.Load()&^mutexParked != 0 {
			return errors.New("mutex locked at rest")
		}
	case *RWMutex:
		return rwAtRest(l)
	}
	return nil
}

func TestModelCond(t *testing.T) {
	defer backToReality()
	for _, scripts := range [][]string{{"WW", "SS"}, {"WW", "ss"}, {"WL", "AL"}, {"WL", "aL"}, {"Cx", "SL"}, {"CL", "xA"}} {
		cover(t, modes[0], condProgram(newMutex, scripts...), twoPs)
	}
	cover(t, modes[1], condProgram(newMutex, "WL", "aL"), twoPs)
	cover(t, modes[0], condProgram(newRWMutex, "WL", "aL"), twoPs)
	for _, scripts := range [][]string{{"WL", "AL"}, {"WL", "aL"}, {"CL", "xA"}, {"Cx", "AL"}} {
		cover(t, modes[0], onFew(scripts...), twoPs)
	}
	for _, scripts := range [][]string{{"W", "W", "A"}, {"W", "C", "ax"}, {"C", "W", "xa"}, {"W", "W", "aS", "W"}} {
		cover(t, fenceMode, onFew(scripts...), twoPs)
	}
	for _, scripts := range [][]string{{"W", "W", "A"}, {"W", "W", "aL"}, {"W", "C", "SSx"}, {"W", "C", "Ax"}, {"W", "L", "W", "a"}, {"W", "AL", "C", "x"}} {
		cover(t, fenceMode, condProgram(newMutex, scripts...), twoPs)
	}
	cover(t, orderedMode, condProgram(newMutex, "W", "L", "W", "a"), twoPs)
	cover(t, modes[0], condProgram(newRWMutex, "W", "W", "L", "a"), twoPs)
}

// The faults that are seeded in morph.go, and in what it uses.
var condMutants = []seeded{
	{"unpark: turn is not passed on", modes[0], onFew("W", "W", "a"), sim.Exhaustive(2)},
	{"cond: tag not set", modes[0], condProgram(newMutex, "W", "A"), sim.Exhaustive(2)},
	{"cond: parked set before the waiters are counted", modes[0], condProgram(newMutex, "W", "L", "a"), sim.Exhaustive(2)},
	{"cond: tag not validated", fenceMode, condProgram(newMutex, "W", "L", "a"), sim.Uniform(1)},
	{"cond: woken waiter forgets its duty", modes[0], condProgram(newMutex, "W", "W", "a"), sim.Exhaustive(2)},
}
