//go:build !linux

package parking

// mapBuckets returns n buckets, wherever the runtime puts them: this system's
// memory cannot be placed.
func mapBuckets(n int, id int) ([]bucket, error) { return newBuckets(n), nil }

func unmapBuckets([]bucket) {}

// policyNode returns NoNode: this system tells of no memory policy.
func policyNode(uintptr) int { return NoNode }
