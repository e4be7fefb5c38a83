//go:build sim

package sim

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// naming is what Name said about a piece of memory.
type naming struct {
	span
	name string
	typ  reflect.Type
	bits []string
}

// span is a piece of memory.
type span struct {
	base addr
	size uintptr
	hash uint64 // of the Poison
}

func (s span) holds(p addr) bool {
	off := uintptr(p) - uintptr(s.base)
	return off < s.size || p == s.base
}

// Name says what the words in *p are called in traces: the name, and the path of the field if p points to a struct or an
// array. Bits, if given, are the names of the low bits of the words in it. Call it in Setup or by the thread that
// made the object. Reduction ByState needs every word named, and an exhaustive search is shorter if Setup names what the
// threads share: it then finds out which words nobody writes.
func Name[T any](p *T, name string, bits ...string) {
	e := engineHere()
	if e == nil || !e.tracing && !e.byState && !e.quiet && e.prog.Watch == nil {
		return
	}
	e.names = append(e.names, naming{span{addr(p), unsafe.Sizeof(*p), 0}, name, reflect.TypeFor[T](), bits})
}

// naming returns what is known about the memory at a, nil if nothing. The last call of Name wins.
func (e *engine) naming(a addr) *naming {
	for i := len(e.names) - 1; i >= 0; i-- {
		if e.names[i].holds(a) {
			return &e.names[i]
		}
	}
	return nil
}

// place turns the name of a word into a number.
func (e *engine) place(w *word) uint64 {
	p := e.nameOf(w.at)
	if p == 0 {
		panic(fmt.Sprintf("sim: reduction ByState needs every word named; %d named objects, the word used as %d. is not in one",
			len(e.names), e.nw))
	}
	return p
}

// nameOf returns a number for an address inside a named object, 0 for others.
func (e *engine) nameOf(a addr) uint64 {
	for i := range e.names {
		if n := &e.names[i]; n.holds(a) {
			return uint64(i+1)<<32 + uint64(uintptr(a)-uintptr(n.base))
		}
	}
	return 0
}

// nameWord returns the name of a word for people.
func (e *engine) nameWord(w *word) string {
	n := e.naming(w.at)
	if n == nil {
		return fmt.Sprintf("word%d", w.id)
	}
	return n.name + fieldPath(n.typ, uintptr(w.at)-uintptr(n.base))
}

// fieldPath names the part of a t that lies at the offset. It stops at the types of this package.
func fieldPath(t reflect.Type, off uintptr) string {
	if strings.HasSuffix(t.PkgPath(), "internal/sim") && isSeamType(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := t.NumField() - 1; i >= 0; i-- {
			if f := t.Field(i); f.Offset <= off && (off < f.Offset+f.Type.Size() || f.Offset == off) {
				return "." + f.Name + fieldPath(f.Type, off-f.Offset)
			}
		}
	case reflect.Array:
		if s := t.Elem().Size(); s > 0 {
			return fmt.Sprintf("[%d]", off/s) + fieldPath(t.Elem(), off%s)
		}
	}
	return ""
}

func isSeamType(t reflect.Type) bool {
	switch name, _, _ := strings.Cut(t.Name(), "["); name {
	case "Uint32", "Int32", "Uint64", "Int64", "Uintptr", "Bool", "Pointer", "Parker", "Mutex", "Semaphore", "Timer":
		return true
	}
	return false
}

// format writes a value, by bit names if the word has some.
func (e *engine) format(n *naming, v value) string {
	if v.p != nil {
		if o := e.naming(v.p); o != nil {
			return "&" + o.name
		}
		return fmt.Sprintf("%p", v.p)
	}
	if n == nil || len(n.bits) == 0 || v.n == 0 {
		if v.n > 1<<31 && v.n < 1<<32 {
			return fmt.Sprint(int32(v.n))
		}
		return fmt.Sprint(int64(v.n))
	}
	var parts []string
	for i, name := range n.bits {
		if v.n>>i&1 != 0 && name != "" {
			parts = append(parts, name)
			v.n &^= 1 << i
		}
	}
	if v.n != 0 {
		parts = append(parts, fmt.Sprintf("%#x", v.n))
	}
	return strings.Join(parts, "|")
}

// Poison declares that the memory of *p must not be used any more: an operation on a word inside fails the schedule. It is
// what a simulated seam does with a waiter record instead of using it again. The object must not be the first field of
// something that lives on.
func Poison[T any](p *T) {
	if t := current(); t != nil {
		t.point(opPoison, nil)
		t.poison(span{addr(p), unsafe.Sizeof(*p), 0})
	}
}
