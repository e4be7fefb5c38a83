package main

import (
	"fmt"
	"os"

	"github.com/hqsync/hqsync/topology"
)

type topologyCmd struct {
	Root string `placeholder:"DIR" help:"Read a copy of another machine's /sys and /proc/self below this directory instead."`
}

func (c *topologyCmd) Help() string {
	return `Prints what the locks know about this machine: NUMA nodes, locality domains, distances, the CPUs that this process
may use, and where the caller runs. It measures nothing.

Example: go run ./bench topology

Example: SYNC2=topology=2x12x16 go run ./bench topology

One domain means that the locks treat all CPUs alike. A message after the tree means that SYNC2 or the kernel's
description of the machine was not understood; the tree is then what the locks use in its place.`
}

func (c *topologyCmd) Run(b *bench) error {
	if err := b.without("topology", "d", "samples", "procs", "filter", "json", "out"); err != nil {
		return err
	}
	if c.Root != "" {
		if info, err := os.Stat(c.Root); err != nil || !info.IsDir() {
			return usagef("-root %s: want a directory with a copy of /sys in it", c.Root)
		}
		t, err := topology.DiscoverFS(os.DirFS(c.Root))
		if err != nil {
			return err
		}
		return t.Tree(b.stdout)
	}
	t, err := topology.Get()
	if err := t.Tree(b.stdout); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "the caller    cpu %s, domain %d, node %d\n", known(t.CurrentCPU()), t.CurrentDomain(), t.CurrentNode())
	return err
}

func known(n int) string {
	if n == topology.Unknown {
		return "unknown"
	}
	return fmt.Sprint(n)
}
