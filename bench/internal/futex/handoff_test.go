package futex_test

import (
	"testing"

	"github.com/hqsync/hqsync/bench/internal/futex"
	"github.com/hqsync/hqsync/bench/internal/harness"
)

// TestHandOff_DoesItsSections: nobody is lost, and under the race detector whoever takes the lock comes after whoever had
// it, also if the lock became free while somebody was about to queue.
func TestHandOff_DoesItsSections(t *testing.T) {
	const sections = 200_000
	tally, err := harness.RunN(futex.Closed(futex.NewHandOff(), 4, 1, 1), sections, func() {})
	if err != nil || tally.Ops != sections {
		t.Errorf("%d sections, %v, want %d", tally.Ops, err, sections)
	}
}
