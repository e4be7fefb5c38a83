//go:build !sim && !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package rt

import "sync"

type resumeMutex = sync.Mutex

// A oneShot is a channel of one slot.
type oneShot struct{ ch chan struct{} }

func newOneShot() oneShot  { return oneShot{make(chan struct{}, 1)} }
func (c oneShot) send()    { c.ch <- struct{}{} }
func (c oneShot) receive() { <-c.ch }
