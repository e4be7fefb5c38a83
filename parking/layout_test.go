package parking_test

import (
	"testing"

	"github.com/hqsync/hqsync/parking"
)

func TestBucket_IsOneCacheLine(t *testing.T) {
	if parking.BucketSize != 64 {
		t.Errorf("a bucket has %d bytes, not 64", parking.BucketSize)
	}
	for _, n := range []int{2, 16, 1024, 4096} {
		addrs := parking.BucketAddresses(n)
		if len(addrs) != n {
			t.Fatalf("%d buckets, not %d", len(addrs), n)
		}
		for i, a := range addrs {
			if a%64 != 0 || a != addrs[0]+uintptr(i)*64 {
				t.Fatalf("bucket %d of %d is at %#x", i, n, a)
			}
		}
	}
}
