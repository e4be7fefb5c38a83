// Program unlock has one call of Unlock with nothing around it, for a look at its machine code.
package main

import "sync"

//go:noinline
func unlock(mu *sync.Mutex) { mu.Unlock() }

func main() {
	mu := new(sync.Mutex)
	mu.Lock()
	unlock(mu)
}
