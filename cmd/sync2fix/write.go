package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// An edit replaces the contents of one file of a module.
type edit struct {
	rel      string
	old, new []byte
}

// A staged edit waits in the file temp to be moved to path, which lies in the same directory.
type staged struct {
	edit
	path, temp string
}

// writeAll carries out every edit below root, or none. Each file keeps its permissions.
func writeAll(root string, edits []edit) error {
	stage, err := stageAll(root, edits)
	defer discard(stage)
	if err != nil {
		return fmt.Errorf("nothing written: %w", err)
	}
	return moveAll(stage)
}

// stageAll finds out whatever can be found out before the first file changes.
func stageAll(root string, edits []edit) (stage []staged, err error) {
	for _, e := range edits {
		path := filepath.Join(root, filepath.FromSlash(e.rel))
		temp, err := stageOne(path, e.new)
		if err != nil {
			return stage, err
		}
		stage = append(stage, staged{e, path, temp})
	}
	return stage, nil
}

// stageOne writes a temporary file with the contents given and the permissions of the file at path.
func stageOne(path string, contents []byte) (temp string, err error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o200 == 0: // a rename would go through, and root may do all
		return "", fmt.Errorf("%s is read-only (mode %v)", path, info.Mode().Perm())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sync2fix-")
	if err != nil {
		return "", fmt.Errorf("%s cannot be replaced: %w", path, err)
	}
	_, err = f.Write(contents)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chmod(f.Name(), info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s cannot be replaced: %w", path, err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// moveAll moves what is staged into place. If a move fails after all, those before it are undone.
func moveAll(stage []staged) error {
	for i, s := range stage {
		err := os.Rename(s.temp, s.path)
		if err == nil {
			continue
		}
		for _, moved := range stage[:i] {
			err = errors.Join(err, moved.restore())
		}
		return err
	}
	return nil
}

func (s staged) restore() error {
	temp, err := stageOne(s.path, s.old)
	if err != nil {
		return fmt.Errorf("%s keeps its new contents: %w", s.path, err)
	}
	return os.Rename(temp, s.path)
}

// discard removes the temporary files that are still there.
func discard(stage []staged) {
	for _, s := range stage {
		os.Remove(s.temp) // fails for those that were moved, as it should
	}
}
