//go:build sim

package sim

import "slices"

// A History records which operations overlapped, for a check of linearizability. Make a new one in Setup. Both ends of
// an operation are steps, so that the reductions keep their order.
type History[In, Out any] struct {
	Ops   []Op[In, Out]
	clock Uint32
}

// Op is one operation. Return is 0 if it did not come back.
type Op[In, Out any] struct {
	Thread       int
	In           In
	Out          Out
	Call, Return int
}

// Do performs f as an operation.
func (h *History[In, Out]) Do(in In, f func() Out) Out {
	t := current()
	if t == nil {
		panic("sim: History used outside a run")
	}
	i := len(h.Ops)
	h.Ops = append(h.Ops, Op[In, Out]{Thread: t.id, In: in})
	h.Ops[i].Call = int(h.clock.Add(1))
	out := f()
	h.Ops[i].Out = out
	h.Ops[i].Return = int(h.clock.Add(1))
	return out
}

// Linearizable reports whether there is an order of the operations that respects real time and in which each of them is a
// step of the specification: step returns the state after the operation, and whether the operation may return this in the
// state before. Operations that did not come back may have taken effect or not. At most 64 operations.
//
// The search is that of Wing and Gong (1993) with Lowe's memory of the points it has been to.
func (h *History[In, Out]) Linearizable(start any, step func(state any, op Op[In, Out]) (any, bool)) bool {
	type point struct {
		done  uint64
		state any
	}
	ops := slices.DeleteFunc(slices.Clone(h.Ops), func(o Op[In, Out]) bool { return o.Call == 0 })
	if len(ops) > 64 {
		panic("sim: history of more than 64 operations")
	}
	been := map[point]bool{}
	var search func(done uint64, state any) bool
	search = func(done uint64, state any) bool {
		if been[point{done, state}] {
			return false
		}
		been[point{done, state}] = true
		end, complete := int(^uint(0)>>1), true // the first return among what is left: what was called later cannot come first
		for i, o := range ops {
			if done>>i&1 == 0 && o.Return != 0 {
				end, complete = min(end, o.Return), false
			}
		}
		if complete {
			return true
		}
		for i, o := range ops {
			if done>>i&1 != 0 || o.Call > end {
				continue
			}
			if next, ok := step(state, o); ok && search(done|1<<i, next) {
				return true
			}
		}
		return false
	}
	return search(0, start)
}
