//go:build !(gc && go1.26 && !go1.27 && (amd64 || arm64) && !purego)

package rt

// MutexProfiled reports whether MutexEvent reaches the mutex profile. The hook
// that allowed it has gone in Go 1.27, and the portable twin has none.
const MutexProfiled = false

// MutexEvent does nothing in this build.
func MutexEvent(cycles int64, skip int) {}
