package fuzz

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hqsync/hqsync/sync2"
)

const (
	mLock = iota
	mTryLock
	mTryLockFor
	mLockContext
	mLockEnded // with a context that has ended
	mUnlock
	numMutexOps
)

func FuzzMutex(f *testing.F) {
	f.Add([]byte{mLock, 0, mUnlock, 0, mTryLock, 0, mTryLock, 0, mUnlock, 0})
	f.Add([]byte{mLock, 9, mLock, 9, mLock, 9, mTryLockFor, 3, mLockContext, 5, mLock, 1, mTryLockFor, 200, mLock, 9})
	f.Add([]byte{mLockEnded, 0, mLock, 0, mLockEnded, 0, mUnlock, 0, mLockContext, 0, mLockContext, 1, mLockContext, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			data = data[:200]
		}
		mutexAgainstModel(t, data)
		mutexAtOnce(t, data)
	})
}

// mutexAgainstModel makes the calls one after another: a mutex is a bool.
func mutexAgainstModel(t *testing.T, data []byte) {
	var m sync2.Mutex
	locked := false
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for ; len(data) >= 2; data = data[2:] {
		var got bool
		want := !locked
		switch data[0] % numMutexOps {
		case mLock:
			if locked {
				continue
			}
			m.Lock()
			got = true
		case mTryLock:
			got = m.TryLock()
		case mTryLockFor:
			d := time.Duration(int8(data[1])) * time.Microsecond
			got = m.TryLockFor(d)
		case mLockContext:
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(data[1])*time.Microsecond)
			err := m.LockContext(ctx)
			got = err == nil
			if !got && err != ctx.Err() {
				t.Fatalf("LockContext: %v, its context: %v", err, ctx.Err())
			}
			if !locked && !got && ctx.Err() != nil {
				want = false // it ended before the call
			}
			cancel()
		case mLockEnded:
			got, want = m.LockContext(ended) == nil, false
		case mUnlock:
			if locked {
				m.Unlock()
				locked = false
			}
			continue
		}
		if got != want {
			t.Fatalf("op %d of a mutex with locked = %v: %v", data[0]%numMutexOps, locked, got)
		}
		locked = locked || got
	}
	if locked {
		m.Unlock()
	}
}

// mutexAtOnce gives each goroutine a part of the program; a lock is always
// followed by an unlock.
func mutexAtOnce(t *testing.T, data []byte) {
	const crew = 5
	var m sync2.Mutex
	var inside, held int
	var locks atomic.Int64
	var wg sync.WaitGroup
	timer := time.AfterFunc(patience, func() { panic("the program does not end: a wake-up was lost") })
	defer timer.Stop()
	for g := range crew {
		wg.Go(func() {
			for n := 2 * g; n+1 < len(data); n += 2 * crew {
				what, arg := data[n]%numMutexOps, data[n+1]
				got := true
				switch what {
				case mLock, mUnlock:
					m.Lock()
				case mTryLock, mLockEnded:
					got = m.TryLock()
				case mTryLockFor:
					got = m.TryLockFor(time.Duration(arg) * time.Microsecond)
				case mLockContext:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(arg)*time.Microsecond)
					got = m.LockContext(ctx) == nil
					cancel()
				}
				if !got {
					continue
				}
				if inside++; inside != 1 {
					t.Error("two goroutines are inside")
				}
				held++
				for range arg % 4 {
					runtime.Gosched()
				}
				inside--
				locks.Add(1)
				m.Unlock()
			}
		})
	}
	wg.Wait()
	if !m.TryLock() {
		t.Fatal("the mutex is still locked")
	}
	if held != int(locks.Load()) {
		t.Fatalf("%d sections, %d counted", locks.Load(), held)
	}
	m.Unlock()
}
