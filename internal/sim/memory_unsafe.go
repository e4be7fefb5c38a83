//go:build sim

package sim

import (
	"sync/atomic"
	"unsafe"
)

// addr is the address of a word under test. It is a real pointer, so that a word that the engine knows stays alive, and
// its address is not given to another object, until the schedule is over.
type addr = unsafe.Pointer

// value is what a word holds: n for numbers, p for pointers; the other field is zero.
type value struct {
	n uint64
	p addr
}

// width says how a word is read and written.
type width uint8

const (
	word32 width = iota
	word64
	wordPtr
	object // a lock, parker, timer: memory that only the engine looks into
)

// peek reads the memory of a word. All accesses are atomic, because goroutines outside the run may use the types too.
func (w *word) peek() value {
	if w.width == object {
		return value{n: w.obj}
	}
	return peekAt(w.at, w.width)
}

// poke writes the memory of a word.
func (w *word) poke(v value) {
	if w.width == object {
		w.obj = v.n
		return
	}
	pokeAt(w.at, w.width, v)
}

func peekAt(at addr, w width) value {
	switch w {
	case word32:
		return value{n: uint64((*atomic.Uint32)(at).Load())}
	case word64:
		return value{n: (*atomic.Uint64)(at).Load()}
	}
	return value{p: atomic.LoadPointer((*unsafe.Pointer)(at))}
}

func pokeAt(at addr, w width, v value) {
	switch w {
	case word32:
		(*atomic.Uint32)(at).Store(uint32(v.n))
	case word64:
		(*atomic.Uint64)(at).Store(v.n)
	default:
		atomic.StorePointer((*unsafe.Pointer)(at), v.p)
	}
}
