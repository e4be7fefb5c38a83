package service

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runLeashed runs the command as a child that gets no interrupt from the terminal, since this process ends it, and does
// not survive this process, however that ends. The kernel ties the latter to the thread that started the child.
func runLeashed(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
