//go:build !linux

package parking

import "errors"

// PageNode is for Linux.
func PageNode(uintptr) (int, error) { return NoNode, errors.ErrUnsupported }
