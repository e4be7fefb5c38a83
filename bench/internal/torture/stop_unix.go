//go:build unix

package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// disturbByStopping takes the process off all its CPUs at once, holders and wakers alike, as a debugger or a
// hypervisor does. A child does it, since a process cannot continue itself; it has a process group of its own so that no
// interrupt can come between the two signals.
func disturbByStopping(*session) (func(*rand.Rand) error, func(), error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil, nil, err
	}
	self := strconv.Itoa(os.Getpid())
	strike := func(luck *rand.Rand) error {
		pause := time.Duration(luck.ExpFloat64() * float64(60*time.Millisecond))
		child := exec.Command(shell, "-c", `kill -STOP "$1"; sleep "$2"; kill -CONT "$1"`, "sh", self, fmt.Sprintf("%.3f", pause.Seconds()))
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return child.Run()
	}
	return strike, func() {}, nil
}
