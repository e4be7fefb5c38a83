package asm

// Body is one implementation of the operations: the one the build selected, the
// generic one, or another that this CPU can execute.
type Body struct {
	Name             string
	StoreRelease32   func(p *uint32, v uint32)
	StoreRelease64   func(p *uint64, v uint64)
	LoadAcquire32    func(p *uint32) uint32
	Fence            func()
	Pause            func(n uint32)
	WaitWhileEqual32 func(p *uint32, v, n uint32) uint32
	Ticks            func() uint64
	TicksPerMicro    func() uint64
	PrefetchW        func(addr uintptr)
}

var generic = Body{
	Name:             "generic",
	StoreRelease32:   storeRelease32Generic,
	StoreRelease64:   storeRelease64Generic,
	LoadAcquire32:    loadAcquire32Generic,
	Fence:            fenceGeneric,
	Pause:            pauseGeneric,
	WaitWhileEqual32: waitWhileEqual32Generic,
	Ticks:            ticksGeneric,
	TicksPerMicro:    ticksPerMicrosecondGeneric,
	PrefetchW:        prefetchWGeneric,
}

var selected = Body{
	Name:             "selected",
	StoreRelease32:   storeRelease32,
	StoreRelease64:   storeRelease64,
	LoadAcquire32:    loadAcquire32,
	Fence:            fence,
	Pause:            pause,
	WaitWhileEqual32: waitWhileEqual32,
	Ticks:            ticks,
	TicksPerMicro:    ticksPerMicrosecond,
	PrefetchW:        prefetchW,
}

// Bodies are the implementations that the contract test holds against the same
// table.
var Bodies = append([]Body{selected, generic}, otherBodies()...)
