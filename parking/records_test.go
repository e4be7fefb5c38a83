//go:build !sim

package parking_test

import (
	"strconv"
	"testing"

	"github.com/hqsync/hqsync/internal/rt"
	"github.com/hqsync/hqsync/parking"
)

// The runtime has a size of allocations of 8 KiB: records shall fill one and not
// spill into the next.
func TestRecords_FillAnAllocation(t *testing.T) {
	if !rt.Pinnable || strconv.IntSize != 64 {
		t.Skip("this build has records of another size")
	}
	if parking.RecordBytes > 8192 || parking.RecordBytes < 8192-112 {
		t.Errorf("a batch of records takes %d bytes", parking.RecordBytes)
	}
}
