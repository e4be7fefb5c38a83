//go:build gc && !purego && !race && !sim

package asm

import (
	"sync/atomic"

	"github.com/hqsync/hqsync/asm/internal/x86"
)

// The three ways to read the word node<<12 | cpu that Linux keeps per CPU: RDPID
// and RDTSCP read it from TSC_AUX, LSL from the limit of a segment.

func rdpid() (word uint32, ok bool)

func rdtscp() (word uint32, ok bool)

// lsl needs no feature of the CPU. It is not ok where the kernel underneath is
// not Linux and has no such segment.
func lsl() (word uint32, ok bool)

// wordReader is one of them with the question whether it may be executed.
type wordReader struct {
	name      string
	supported func() bool
	read      func() (word uint32, ok bool)
}

// wordReaders is in order of preference, which is the order of speed
// (BenchmarkCPUNode).
var wordReaders = [...]wordReader{
	{"rdpid", x86.HasRDPID, rdpid},
	{"lsl", func() bool { return true }, lsl},
	{"rdtscp", x86.HasRDTSCP, rdtscp},
}

// chosen is how cpuNode reads: chosenNone until the first call has found out,
// then chosenGetcpu or 1 + an index of wordReaders. Finding out twice does no
// harm.
var chosen atomic.Uint32

const (
	chosenNone   = 0
	chosenGetcpu = 1 + uint32(len(wordReaders))
)

func cpuNode() (cpu, node uint32, ok bool) {
	// The calls are direct: one through the table costs more than RDPID.
	var word uint32
	switch chosen.Load() {
	case 1:
		word, ok = rdpid()
	case 2:
		word, ok = lsl()
	case 3:
		word, ok = rdtscp()
	case chosenGetcpu:
		return getcpu()
	default:
		return cpuNodeFirst()
	}
	return word & 0xfff, word >> 12, ok
}

// cpuNodeFirst chooses. A reader is trusted if it may be executed and agrees
// with the kernel: a sandbox that poses as Linux may number CPUs differently.
func cpuNodeFirst() (cpu, node uint32, ok bool) {
	choice := chosenGetcpu
	for i, r := range wordReaders {
		if r.supported() && agrees(r.read) {
			choice = 1 + uint32(i)
			break
		}
	}
	chosen.Store(choice)
	return cpuNode()
}

// agrees compares a reader with the system call, which may say something else
// because the thread has moved: only two equal answers around the reading count.
func agrees(read func() (uint32, bool)) bool {
	for range 8 {
		cpu, node, ok := getcpu()
		word, valid := read()
		cpuAfter, nodeAfter, _ := getcpu()
		if !ok || !valid {
			return false
		}
		if cpu == cpuAfter && node == nodeAfter {
			return word == node<<12|cpu
		}
	}
	return false
}
