package sync2_test

import (
	"testing"
	"time"

	"github.com/hqsync/hqsync/internal/locktest"
	"github.com/hqsync/hqsync/sync2"
)

// The harness that judges every lock of this module judges these. Its own tests show that it can say no.

func TestMutexPassesEveryCheck(t *testing.T) {
	locktest.TestMutex(t, locktest.Options{}, func() locktest.Mutex { return new(sync2.Mutex) })
}

func TestRWMutexPassesEveryCheck(t *testing.T) {
	locktest.TestRWMutex(t, locktest.Options{}, func() locktest.RWMutex { return new(sync2.RWMutex) })
}

// TestRLockerIsTheReaderSide: as a Mutex it excludes writers, not readers; here it is used as the only reader's lock.
func TestRLockerIsTheReaderSide(t *testing.T) {
	onEach(t, func(t *testing.T, s subject) {
		rw := s.newRWMutex()
		l := rw.RLocker()
		l.Lock()
		l.Lock()
		if rw.TryLock() {
			t.Fatal("a writer got in while the RLocker was locked twice")
		}
		l.Unlock()
		writer := locktest.Start(func() { rw.Lock(); rw.Unlock() })
		if err := writer.WaitAsleep(time.Minute); err != nil {
			t.Fatal(err)
		}
		l.Unlock()
		if err := writer.WaitEnded(time.Minute); err != nil {
			t.Fatal(err)
		}
	})
}
