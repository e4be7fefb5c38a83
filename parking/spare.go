//go:build !sim

package parking

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/hqsync/hqsync/internal/rt"
)

// Each P has a spare record: a refused wait then takes and returns one for two
// loads and two stores, under the pin that it needs anyway.
type spare struct {
	w *waiter // for whoever is pinned to the P
	_ [120]byte
}

// spares are indexed by the number of a P. A larger array comes empty, and takes
// the place of a smaller one that others may still be using: what they put there
// is garbage.
var (
	spares       atomic.Pointer[[]spare]
	makingSpares sync.Mutex
)

// takeSpare returns the spare record of P number p, to which the caller is
// pinned, or nil.
//
//go:norace
func takeSpare(p int) (w *waiter) {
	if list := spares.Load(); rt.Pinnable && list != nil && p < len(*list) {
		s := &(*list)[p]
		w, s.w = s.w, nil
	}
	return w
}

// putSpare makes w the spare record of P number p, to which the caller is pinned,
// unless it has one.
//
//go:norace
func putSpare(p int, w *waiter) bool {
	list := spares.Load()
	if !rt.Pinnable || list == nil || p >= len(*list) {
		return false
	}
	s := &(*list)[p]
	if s.w != nil {
		return false
	}
	s.w = w
	return true
}

// makeSpares makes room for the spare record of every P.
//
//go:norace
func makeSpares() {
	makingSpares.Lock()
	defer makingSpares.Unlock()
	n := runtime.GOMAXPROCS(0)
	if list := spares.Load(); list == nil || len(*list) < n {
		bigger := make([]spare, n)
		spares.Store(&bigger)
	}
}
