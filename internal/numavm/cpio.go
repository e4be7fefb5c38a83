package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
)

// An archive writes what Linux unpacks as its first file system: cpio in the
// format "newc" (the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
// The first error stays.
type archive struct {
	w    io.Writer
	dirs map[string]bool
	size int64
	ino  int
	err  error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: w, dirs: map[string]bool{".": true, "/": true}}
}

// file adds a file and the directories that lead to it.
func (a *archive) file(name string, mode fs.FileMode, content []byte) {
	const regular = 0o100000
	a.parents(name)
	a.entry(name, regular|uint32(mode.Perm()), content)
}

// close ends the archive.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}

func (a *archive) parents(name string) {
	const directory = 0o040000
	dir := path.Dir(name)
	if a.dirs[dir] {
		return
	}
	a.dirs[dir] = true
	a.parents(dir)
	a.entry(dir, directory|0o755, nil)
}

func (a *archive) entry(name string, mode uint32, content []byte) {
	a.ino++
	const links, zero = 1, 0
	header := "070701"
	for _, field := range []int{a.ino, int(mode), zero, zero, links, zero, len(content), zero, zero, zero, zero, len(name) + 1, zero} {
		header += fmt.Sprintf("%08x", field)
	}
	a.write([]byte(header + name + "\x00"))
	a.align()
	a.write(content)
	a.align()
}

// align pads to a multiple of 4 bytes.
func (a *archive) align() { a.write(make([]byte, -a.size&3)) }

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
	a.size += int64(len(b))
}
