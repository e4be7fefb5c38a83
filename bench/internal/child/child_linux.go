// Package child runs processes that do not outlive this one.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Run runs the command. The child gets no interrupt from the terminal: this process ends it, through the command's
// context. It is killed if this process ends first, however that happens; the kernel ties that to the thread which
// started the child.
func Run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
