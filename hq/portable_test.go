//go:build !(gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego)

package hq

import "testing"

// checkQuiet checks that nobody holds l.
func checkQuiet(t *testing.T, l *Lock) {
	t.Helper()
	if !l.TryLock() {
		t.Error("locked at rest")
		return
	}
	l.Unlock()
}
