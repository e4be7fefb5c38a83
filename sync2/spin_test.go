//go:build !sync2_std && !sim

package sync2

import (
	"math/rand/v2"
	"testing"
)

// TestTrip_FollowsTheLine: a virtual machine's CPUs come closer and go apart.
func TestTrip_FollowsTheLine(t *testing.T) {
	const far, near, tries = 400, 60, 1000
	random := rand.New(rand.NewPCG(1, 2))
	var learned turnover
	for _, trip := range []int64{far, near, far} {
		for range tries {
			took := trip + random.Int64N(trip/2)
			switch random.IntN(20) {
			case 0:
				took = 1_000_000 // lost its CPU
			case 1, 2, 3:
				took = 20 // the line was here
			}
			learned.learn(took)
		}
		if got := int64(learned.trip.Load() / tripUnit); got < trip || got > 2*trip {
			t.Errorf("after %d tries of %d to %d ticks: a trip takes %d, want %d to %d", tries, trip, trip*3/2, got, trip, 2*trip)
		}
	}
}
