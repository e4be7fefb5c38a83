// Program goker runs the programs of the goker collection whose names are its arguments, side by side, and dumps what is
// left of them once nothing changes any more.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// yieldCount is used by the programs.
const yieldCount = 10

var programs = map[string]func(){}

func register(name string, f func()) { programs[name] = f }

func main() {
	done := make(chan string)
	for _, name := range os.Args[1:] {
		go func() {
			programs[name]()
			done <- name
		}()
	}
	late := time.After(5 * time.Second)
wait:
	for range os.Args[1:] {
		select {
		case <-done:
		case <-late: // the functions that have not returned are among the stuck
			break wait
		}
	}
	// On a machine that is busy with other things it can take long until nobody moves any more.
	last := dump()
	for range 20 {
		time.Sleep(200 * time.Millisecond)
		now := dump()
		same := states(now) == states(last)
		last = now
		if same {
			break
		}
	}
	fmt.Printf("%s\n", last)
}

// states returns the headers of a dump without the times: who is there and in which state.
func states(dump []byte) string {
	var headers strings.Builder
	for line := range strings.Lines(string(dump)) {
		if strings.HasPrefix(line, "goroutine ") {
			header, _, _ := strings.Cut(line, ",")
			headers.WriteString(header)
		}
	}
	return headers.String()
}

func dump() []byte {
	buf := make([]byte, 1<<20)
	for {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return buf[:n]
		}
		buf = make([]byte, 2*len(buf))
	}
}
