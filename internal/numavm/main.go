// Command numavm runs test suites on a machine that is not there: 8 CPUs on 4
// NUMA nodes, with distances between them. It boots Debian's cloud kernel in
// qemu, without hardware support, with nothing on it but static test binaries
// and a first process that runs them one after the other.
//
//	go run ./internal/numavm                       # the suites of verifyPackages, short
//	go run ./internal/numavm -v -run Tag ./sync2   # some tests of one package
//
// It passes if every binary exits with status 0 and says PASS, and if a control
// that has to fail does. The environment tells the tests on what machine they
// should be (see package numatest): those that need several NUMA nodes, and skip
// themselves elsewhere, fail there if they do not find them.
//
// Packages come by apt-get: qemu-system-x86 has to be installed; the kernel's is
// downloaded and unpacked, never installed, and the kernel is kept in the user's
// cache. Where they cannot be had numavm says so and, except in CI, succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hqsync/hqsync/asm"
)

// verifyPackages are the packages whose suites care about NUMA nodes.
var verifyPackages = []string{"./topology", "./hq", "./parking", "./sync2"}

// errUnavailable is wrapped by what stands for a machine on which numavm cannot
// do its work.
var errUnavailable = errors.New("not available here")

type options struct {
	kernel  string
	cache   string
	run     string
	long    bool
	verbose bool
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kernel, "kernel", "", "the `file` of a kernel; if empty, Debian's for the cloud")
	flag.StringVar(&o.cache, "cache", defaultCache(), "the `directory` where a kernel is kept")
	flag.StringVar(&o.run, "run", "", "the tests to run, as in go test -run")
	flag.BoolVar(&o.long, "long", false, "run the tests without -short")
	flag.BoolVar(&o.verbose, "v", false, "print all that the tests print")
	flag.DurationVar(&o.timeout, "timeout", 8*time.Minute, "how `long` the machine may run")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = verifyPackages
	}

	asm.TicksPerMicrosecond() // a call seconds later gives the exact rate
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := verify(ctx, o, packages)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUnavailable) && os.Getenv("CI") == "":
		fmt.Println("numavm: skipped:", err)
	default:
		fmt.Println("numavm: FAILED:", err)
		os.Exit(1)
	}
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "hqsync-numavm")
}

// verify runs the suites of packages in the machine.
func verify(ctx context.Context, o options, packages []string) error {
	if err := findEmulator(); err != nil {
		return err
	}
	kernel := o.kernel
	if kernel == "" {
		var err error
		if kernel, err = cachedKernel(ctx, o.cache); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp("", "numavm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	suites, err := build(ctx, work, packages)
	if err != nil {
		return err
	}
	p := planFor(suites, o)
	disk := filepath.Join(work, "initramfs")
	if err := pack(disk, work, suites, p); err != nil {
		return err
	}
	v := newVerdict(p, os.Stdout, o.verbose)
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := boot(ctx, kernel, disk, v); err != nil {
		v.dump()
		return err
	}
	return v.err()
}
