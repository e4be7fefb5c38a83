//go:build !sim

package main

type numasimCmd struct {
	Args []string `arg:"" optional:"" passthrough:"" hidden:""`
}

func (c *numasimCmd) Help() string {
	return `Models locks and tables on machines that are not here. This build is without the simulator; with it, -h says what a figure
means.

Example: go run -tags sim ./bench numasim`
}

func (c *numasimCmd) Run(*bench) error {
	return usagef("numasim needs the simulator; run go run -tags sim ./bench numasim")
}

func init() { notInAll["numasim"] = "this build is without the simulator" }
