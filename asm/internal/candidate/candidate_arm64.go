//go:build gc && !purego

package candidate

import "golang.org/x/sys/cpu"

// hasLSE is read by the assembly, unless GOARM64 already promises LSE.
//
//lint:ignore U1000 the assembly is not looked at
var hasLSE = cpu.ARM64.HasATOMICS

// CompareAndSwap32 is sync/atomic's with acquire ordering only. It is one LSE
// instruction where the CPU has it, else a loop of exclusives.
//
//go:noescape
func CompareAndSwap32(p *uint32, old, new uint32) (swapped bool)
