//go:build !linux

// Package child runs processes.
package child

import "os/exec"

// Run runs the command. On Linux it also sees to it that the child does not outlive this process.
func Run(cmd *exec.Cmd) error { return cmd.Run() }
