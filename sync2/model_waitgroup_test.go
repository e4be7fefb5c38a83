//go:build sim && !sync2_std

package sync2

import (
	"fmt"
	"testing"

	"github.com/hqsync/hqsync/internal/sim"
)

// waitGroupProgram runs the given scripts on a WaitGroup that begins with n
// tasks: D is the end of one, F the begin of another one by a task that is under
// way, W waits for all, C the same until x cancels, G is a round of its own with
// a task that is done at once, which is a reuse after W.
func waitGroupProgram(n int, scripts ...string) sim.Program {
	var wg *WaitGroup
	var ctx *sim.Context
	var tasks int // begun and not done
	step := func(op rune) {
		switch op {
		case 'D':
			tasks--
			wg.Done()
		case 'F':
			tasks++
			wg.Add(1)
		case 'W':
			wg.Wait()
			sim.Assert(tasks == 0, "Wait returned early")
		case 'C':
			if wg.WaitContext(ctx) == nil {
				sim.Assert(tasks == 0, "WaitContext returned nil early")
			}
		case 'x':
			ctx.Cancel()
		case 'G':
			wg.Add(1)
			sim.Go(wg.Done)
			wg.Wait()
		}
	}
	return program(fmt.Sprint("waitgroup ", n, scripts), func() {
		wg, ctx, tasks = new(WaitGroup), sim.NewContext(), n
		sim.Name(&wg.state, "tasks")
		wg.Add(n)
	}, step, func() error {
		if s := wg.state.Load(); s != 0 {
			return fmt.Errorf("state %#x at rest", s)
		}
		return nil
	}, scripts)
}

func TestModelWaitGroup(t *testing.T) {
	defer backToReality()
	for _, p := range []sim.Program{
		waitGroupProgram(2, "WG", "DD"), waitGroupProgram(1, "WG", "FDD"), waitGroupProgram(2, "CW", "DxD"),
		waitGroupProgram(1, "CWG", "D", "x"),
		waitGroupProgram(2, "WW", "DD"),
	} {
		cover(t, modes[0], p, twoPs)
	}
	for _, p := range []sim.Program{
		waitGroupProgram(2, "W", "W", "DD"), waitGroupProgram(2, "W", "C", "DFDxD"), waitGroupProgram(2, "W", "W", "D", "FDD"),
	} {
		cover(t, modes[0], p, twoPs)
	}
}
