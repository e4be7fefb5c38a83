//go:build !(linux && !android && (amd64 || arm64) && gc && !purego && !race && !sim)

package asm

// No HeavyFence: no such system call (other kernels; Android, whose sandbox may
// kill the caller), or nobody to use it, because without plain stores there is
// no cheap half.

func heavyFence() bool { return false }

func heavyFenceAvailable() bool { return false }

func registerHeavyFence() bool { return false }

func heavyFenceLost() bool { return false }
