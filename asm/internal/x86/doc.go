// Package x86 reads the CPUID bits that package asm and its candidates depend on.
//
// It exists beside github.com/klauspost/cpuid/v2, which package topology uses,
// for two reasons. That module does not report RDPID and MONITORX, and it
// detects everything in its package initialisation (a hundred or so CPUID
// instructions, each a trap to the hypervisor in a virtual machine; on arm64 it
// also opens a file). A package at the bottom of a lock library may do neither.
// Here nothing runs before it is asked for; a test compares the answers with
// that module's wherever both have one.
package x86
