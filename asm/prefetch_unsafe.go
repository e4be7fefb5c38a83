package asm

import "unsafe"

// PrefetchW asks for the cache line at p in a state that a store can use at
// once. It orders nothing and cannot fault, so p may be nil or point into
// memory that is gone. It does not keep the object alive either: the address
// becomes a plain number here, which is sound because nothing is read through it.
func PrefetchW(p unsafe.Pointer) { prefetchW(uintptr(p)) }
