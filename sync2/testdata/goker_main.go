// Program goker runs the programs of the goker collection whose names are its arguments, side by side, and prints what
// is left of them: two goroutine dumps, so that those who only happen to wait can be told from those who are stuck.
package main

import (
	"fmt"
	"os"
	"runtime"
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
	for range 2 {
		time.Sleep(200 * time.Millisecond)
		fmt.Printf("DUMP\n%s\n", dump())
	}
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
