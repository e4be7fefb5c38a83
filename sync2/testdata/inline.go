// Program inline calls each method on a path of its own, for the compiler to tell what it inlines.
package main

import "sync"

var (
	mu sync.Mutex
	rw sync.RWMutex
	wg sync.WaitGroup
)

func main() {
	mu.Lock()
	mu.Unlock()
	rw.RLock()
	rw.RUnlock()
	rw.Lock()
	rw.Unlock()
	mu.TryLock()
	wg.Add(1)
	wg.Done()
	wg.Wait()
}
