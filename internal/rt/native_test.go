//go:build gc && go1.26 && !go1.28 && (amd64 || arm64) && !purego

package rt

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// The dump is what an operator reads at night: each reason shows as in sync.
func TestParkShowsReasonInDump(t *testing.T) {
	for reason := range numReasons {
		text := reason.String()
		p := new(Parker)
		id := make(chan string, 1)
		done := make(chan bool)
		go func() {
			var buf [64]byte
			id <- strings.Fields(string(buf[:runtime.Stack(buf[:], false)]))[1]
			p.Prepare()
			p.Park(reason, 0)
			close(done)
		}()
		header := fmt.Sprintf("goroutine %s [%s", <-id, text)
		deadline := time.Now().Add(time.Minute)
		for {
			buf := make([]byte, 1<<20)
			dump := string(buf[:runtime.Stack(buf, true)])
			if i := strings.Index(dump, header); i >= 0 {
				if rest := dump[i+len(header)]; rest != ']' && rest != ',' {
					t.Errorf("reason %d: header goes on with %q", reason, rest)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q in the dump:\n%s", header, dump)
			}
			time.Sleep(time.Millisecond)
		}
		p.Unpark(0)
		<-done
	}
}

func TestCASContract(t *testing.T) {
	guarded := [3]uint32{0xaaaaaaaa, 5, 0xbbbbbbbb}
	p := &guarded[1]
	if cas(p, 4, 9) || *p != 5 {
		t.Fatal("exchanged although the word differed")
	}
	if !cas(p, 5, 9) || *p != 9 {
		t.Fatal("did not exchange")
	}
	if guarded[0] != 0xaaaaaaaa || guarded[2] != 0xbbbbbbbb {
		t.Fatal("wrote beside the word")
	}
}

func TestBlockEventSkip(t *testing.T) {
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	blockHere()
	records := make([]runtime.BlockProfileRecord, 1000)
	n, _ := runtime.BlockProfile(records)
	for _, r := range records[:n] {
		f, _ := runtime.CallersFrames(r.Stack()).Next()
		if strings.HasSuffix(f.Function, ".blockHere") {
			return
		}
	}
	t.Fatal("no sample with blockHere on top")
}

//go:noinline
func blockHere() { BlockEvent(1<<40, 0) }

func TestMutexEventSkip(t *testing.T) {
	if !MutexProfiled {
		t.Skip("this Go version has no mutex profile hook")
	}
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	mutexHere()
	records := make([]runtime.BlockProfileRecord, 1000)
	n, _ := runtime.MutexProfile(records)
	for _, r := range records[:n] {
		f, _ := runtime.CallersFrames(r.Stack()).Next()
		if strings.HasSuffix(f.Function, ".mutexHere") {
			return
		}
	}
	t.Fatal("no sample with mutexHere on top")
}

//go:noinline
func mutexHere() { MutexEvent(1<<40, 0) }

func TestParkerSize(t *testing.T) {
	if s := unsafe.Sizeof(Parker{}); s != 16 && unsafe.Sizeof(sleep{}) == unsafe.Sizeof(realSleep{}) {
		t.Fatalf("a Parker takes %d bytes, not 16", s)
	}
}
