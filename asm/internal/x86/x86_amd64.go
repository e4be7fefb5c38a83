//go:build gc && !purego

package x86

import "encoding/binary"

// cpuid executes CPUID with EAX = leaf and ECX = sub.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

const extended = 0x80000000 // the first extended leaf; its EAX is the last one

// leaf returns the registers of a leaf, or zeros if the CPU does not have it:
// beyond its last leaf a CPU may answer with the data of another one.
func leaf(n uint32) (ebx, ecx, edx uint32) {
	last, _, _, _ := cpuid(n&extended, 0)
	if n > last {
		return 0, 0, 0
	}
	_, ebx, ecx, edx = cpuid(n, 0)
	return ebx, ecx, edx
}

// HasRDPID reports whether RDPID, which reads TSC_AUX, may be executed.
func HasRDPID() bool {
	_, ecx, _ := leaf(7)
	return ecx&(1<<22) != 0
}

// HasWAITPKG reports whether TPAUSE, UMONITOR and UMWAIT may be executed.
func HasWAITPKG() bool {
	_, ecx, _ := leaf(7)
	return ecx&(1<<5) != 0
}

// HasRDTSCP reports whether RDTSCP may be executed.
func HasRDTSCP() bool {
	_, _, edx := leaf(extended | 1)
	return edx&(1<<27) != 0
}

// HasMONITORX reports whether MONITORX and MWAITX may be executed.
func HasMONITORX() bool {
	_, ecx, _ := leaf(extended | 1)
	return ecx&(1<<29) != 0
}

// HasINVLPGB reports whether the kernel can flush other CPUs' translations
// without interrupting them.
func HasINVLPGB() bool {
	ebx, _, _ := leaf(extended | 8)
	return ebx&(1<<3) != 0
}

// Hypervisor returns the signature of the hypervisor, which is text padded with
// zero bytes, or zero bytes on bare metal.
func Hypervisor() (signature [12]byte) {
	const present = 1 << 31
	if _, ecx, _ := leaf(1); ecx&present == 0 {
		return signature
	}
	_, ebx, ecx, edx := cpuid(0x40000000, 0)
	for i, register := range [...]uint32{ebx, ecx, edx} {
		binary.LittleEndian.PutUint32(signature[4*i:], register)
	}
	return signature
}
