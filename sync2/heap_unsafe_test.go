//go:build !sync2_std

package sync2

import (
	"testing"
	"unsafe"
)

// grow needs n KiB of stack.
func grow(n int) byte {
	var frame [1 << 10]byte
	if n == 0 {
		return frame[0]
	}
	return grow(n-1) + frame[n%len(frame)]
}

// panics returns what f panics with on a goroutine of its own, whose stack is small.
func panics(f func()) (value any) {
	result := make(chan any)
	go func() {
		defer func() { result <- recover() }()
		f()
	}()
	return <-result
}

// Goroutines park by address, and a Cond remembers its own: so none of these may be on a stack, which moves, also
// if nothing but the calls here would keep it from that.
func TestPrimitives_DoNotMove(t *testing.T) {
	if v := panics(func() {
		var c Cond
		c.Signal()
		grow(100)
		c.Broadcast()
	}); v != nil {
		t.Errorf("a Cond that nobody copied: panic %v", v)
	}
	for name, moved := range map[string]func() bool{
		"Mutex": func() bool {
			var m Mutex
			m.Lock()
			before := uintptr(unsafe.Pointer(&m))
			grow(100)
			m.Unlock()
			return uintptr(unsafe.Pointer(&m)) != before
		},
		"RWMutex": func() bool {
			var rw RWMutex
			rw.Lock()
			before := uintptr(unsafe.Pointer(&rw))
			grow(100)
			rw.Unlock()
			return uintptr(unsafe.Pointer(&rw)) != before
		},
		"WaitGroup": func() bool {
			var wg WaitGroup
			wg.Add(1)
			before := uintptr(unsafe.Pointer(&wg))
			grow(100)
			wg.Done()
			wg.Wait()
			return uintptr(unsafe.Pointer(&wg)) != before
		},
	} {
		if v := panics(func() {
			if moved() {
				panic("it moved")
			}
		}); v != nil {
			t.Errorf("%s: %v", name, v)
		}
	}
}
