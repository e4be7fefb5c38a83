// Program copylocks copies each type in each way that vet's copylocks check looks for.
package main

import "sync"

type holder struct {
	mu   sync.Mutex
	rw   sync.RWMutex
	cond sync.Cond
	wg   sync.WaitGroup
}

func passMutex(sync.Mutex)         {}
func passRWMutex(sync.RWMutex)     {}
func passCond(sync.Cond)           {}
func passWaitGroup(sync.WaitGroup) {}
func passHolder(holder)            {}

func assign(h *holder) {
	mu := h.mu
	rw := h.rw
	cond := h.cond
	wg := h.wg
	_, _, _, _ = &mu, &rw, &cond, &wg
}

func literal(h *holder) *holder {
	return &holder{mu: h.mu, rw: h.rw, cond: h.cond, wg: h.wg}
}

func (h holder) method() {}

func rangeOver(hs []holder) {
	for _, h := range hs {
		_ = &h
	}
}

func returnAll(h *holder) (sync.Mutex, sync.RWMutex, sync.Cond, sync.WaitGroup) {
	return h.mu, h.rw, h.cond, h.wg
}

func call(h *holder) {
	passMutex(h.mu)
	passRWMutex(h.rw)
	passCond(h.cond)
	passWaitGroup(h.wg)
	passHolder(*h)
	func(sync.Mutex) {}(h.mu)
}

func main() {
	h := new(holder)
	assign(h)
	literal(h)
	h.method()
	rangeOver(nil)
	returnAll(h)
	call(h)
}
