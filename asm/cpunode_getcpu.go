//go:build linux && !(amd64 && gc && !purego && !race && !sim)

package asm

func cpuNode() (cpu, node uint32, ok bool) { return getcpu() }
