//go:build linux && !android && gc && !purego && !race && !sim

package asm

import "github.com/hqsync/hqsync/asm/internal/x86"

const bareMetal = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// unmapInterrupts reports whether Linux here drops the translations of other
// CPUs by interrupting them. It does not where the CPU has a broadcast
// instruction for that (INVLPGB), nor as the guest of a hypervisor that offers
// a call for it (Hyper-V, Xen); those it does not know may be one of them.
func unmapInterrupts() bool {
	if x86.HasINVLPGB() {
		return false
	}
	switch signature := x86.Hypervisor(); string(signature[:]) {
	case bareMetal, "KVMKVMKVM\x00\x00\x00", "TCGTCGTCGTCG", "VMwareVMware":
		return true
	}
	return false
}
