// Package candidate holds operations that package asm does not offer, each
// assembled, tested and measured against what it would replace: those that lost,
// and wait instructions that no machine at hand can execute, so that nobody has
// seen them win. The table in package asm says which is which and why.
//
// Only its own tests use the package. A benchmark that turns out well on some
// machine is the reason to move the operation into package asm:
//
//	go test ./asm/internal/candidate -bench .
package candidate
