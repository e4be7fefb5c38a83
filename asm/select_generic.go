//go:build !((amd64 || arm64) && gc && !purego && !race && !sim)

package asm

// The build that selects the generic bodies: no assembly for this CPU or
// compiler, none wanted (purego), or accesses that must be seen by the race
// detector or by the simulator.

func storeRelease32(p *uint32, v uint32) { storeRelease32Generic(p, v) }

func storeRelease64(p *uint64, v uint64) { storeRelease64Generic(p, v) }

func loadAcquire32(p *uint32) uint32 { return loadAcquire32Generic(p) }

func fence() { fenceGeneric() }

func pause(n uint32) { pauseGeneric(n) }

func waitWhileEqual32(p *uint32, v, n uint32) uint32 { return waitWhileEqual32Generic(p, v, n) }

func ticks() uint64 { return ticksGeneric() }

func ticksPerMicrosecond() uint64 { return ticksPerMicrosecondGeneric() }

func prefetchW(addr uintptr) { prefetchWGeneric(addr) }
