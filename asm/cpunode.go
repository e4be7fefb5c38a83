package asm

// CPUNode returns the CPU that the caller runs on and that CPU's NUMA node, in
// Linux's numbering. It is a hint: the thread may have moved before the caller
// looks at the answer. ok is false where the platform does not tell.
//
// On Linux/amd64 it reads what the kernel keeps in a CPU register for this
// purpose, by RDPID, else LSL, else RDTSCP, in 2 to 20 ns; the first call
// checks that the register agrees with getcpu(2). Otherwise, and on other Linux
// architectures, it is that system call, 100 ns and more: cache the answer.
// It allocates nothing and may be called pinned.
func CPUNode() (cpu, node uint32, ok bool) { return cpuNode() }
