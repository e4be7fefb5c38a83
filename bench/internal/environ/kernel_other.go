//go:build !unix

package environ

import "runtime"

// kernel has no portable source of a version here.
func kernel() string { return runtime.GOOS }
