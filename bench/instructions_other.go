//go:build !linux

package main

import (
	"errors"
	"runtime"
)

func countInstructions(op, arm string) (count, error) {
	return count{}, errors.New("counting instructions needs ptrace as Linux has it, not " + runtime.GOOS)
}
