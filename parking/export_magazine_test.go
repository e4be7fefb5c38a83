//go:build !sim

package parking

// ForgetRacks has Ps find themselves without a rack, as after GOMAXPROCS has grown.
func ForgetRacks() { racks.Store(nil) }
