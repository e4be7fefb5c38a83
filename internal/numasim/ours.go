//go:build sim

package numasim

import "github.com/hqsync/hqsync/hq"

// Ours is the name of the lock of package hq.
const Ours = "hq"

// ours is it behind the interface of package locks: a thread's number is that of its P.
type ours struct{ l hq.Lock }

func newOurs() *ours {
	o := new(ours)
	o.l.SetHQ(true)
	return o
}

func (o *ours) Lock(int)   { o.l.Lock() }
func (o *ours) Unlock(int) { o.l.Unlock() }
