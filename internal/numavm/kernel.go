package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// kernelPackage depends on the package of Debian's current kernel for virtual
// machines, which has drivers for little else and boots fast.
const kernelPackage = "linux-image-cloud-amd64"

// cachedKernel returns the file of a kernel, from the cache if it has one.
func cachedKernel(ctx context.Context, cache string) (string, error) {
	file := filepath.Join(cache, "vmlinuz")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "unpack")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	unpacked, err := downloadKernel(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("a kernel is %w: %w", errUnavailable, err)
	}
	return file, os.Rename(unpacked, file)
}

// downloadKernel gets the kernel's package into dir, unpacks it there and returns
// the kernel's file.
func downloadKernel(ctx context.Context, dir string) (string, error) {
	name, err := kernelName(ctx)
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name); err != nil {
		return "", err
	}
	file, err := only(dir, "*.deb")
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, "dpkg-deb", "-x", file, "root"); err != nil {
		return "", err
	}
	return only(dir, "root/boot/vmlinuz-*")
}

// kernelName returns the name of the package that has the kernel, after asking
// for newer lists of packages if there are none.
func kernelName(ctx context.Context) (string, error) {
	depends := regexp.MustCompile(`(?m)^\s*Depends: (linux-image-\S+)$`)
	for _, update := range []bool{false, true} {
		if update {
			if _, err := output(ctx, "", "apt-get", "update", "-qq"); err != nil {
				return "", err
			}
		}
		text, err := output(ctx, "", "apt-cache", "depends", kernelPackage)
		if m := depends.FindStringSubmatch(text); err == nil && m != nil {
			return m[1], nil
		}
	}
	return "", fmt.Errorf("there is no package %s", kernelPackage)
}

// only returns the one file in dir that matches a pattern.
func only(dir, pattern string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%d files match %s, one expected", len(files), pattern)
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

// output runs a command in dir and returns what it prints. The error has what it
// complains about.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%v: %w: %s", cmd.Args, err, exit.Stderr)
	}
	return string(out), err
}
